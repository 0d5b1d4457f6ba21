"""Rare large losses, counted by the size of the largest."""
