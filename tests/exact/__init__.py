"""Truths to hundreds of digits for plans of finitely many outcomes, and random questions about them.

Nothing here uses the library's numerics: a mechanism is written down as its two distributions, the outcomes of the
whole plan are listed, and the profile is the sum over them.
"""
