"""Gaussian noise whose shift is random: groups, users, and sampling with several sizes of contribution."""
