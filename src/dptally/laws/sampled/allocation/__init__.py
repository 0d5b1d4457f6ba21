"""Random allocation: each record is used in one step of every epoch, chosen uniformly (balls and bins)."""
