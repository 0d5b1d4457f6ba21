"""The same laws in ball arithmetic, for proofs."""
