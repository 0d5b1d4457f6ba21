"""Bounded range: the exponential mechanism and everything whose losses span at most epsilon."""
