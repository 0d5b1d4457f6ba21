"""How batches are drawn: one frozen sampler per file, and ``Sampled``, which runs a mechanism on them."""
