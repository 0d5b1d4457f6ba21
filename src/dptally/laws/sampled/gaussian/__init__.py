"""Gaussian noise on a Poisson sample, under both adjacencies."""
