"""Many runs of which the best is kept: how many are made, and what the winner reveals."""
