"""Lattices: losses moved onto points, up and down, and convolved."""
