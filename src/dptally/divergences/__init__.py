"""Divergences between distributions and the inequalities between them."""
