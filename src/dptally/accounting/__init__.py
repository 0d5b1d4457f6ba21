"""How much it cost: one framework per file, and the certified numerical accountant. Works on the abstract law only."""
