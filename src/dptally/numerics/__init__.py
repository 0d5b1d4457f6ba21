"""Numbers only: log-space helpers, normal tails, quadrature, bracketed roots. Knows nothing of privacy."""
