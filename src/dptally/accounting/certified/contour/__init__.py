"""Contours: delta as a trapezoid sum through a saddle point of the loss."""
