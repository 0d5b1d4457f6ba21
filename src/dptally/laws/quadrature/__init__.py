"""Sums that stand for integrals over a loss: trapezoid rules, panels, tilted atoms."""
