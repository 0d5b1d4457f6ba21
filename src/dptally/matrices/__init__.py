"""How far one record can move a matrix mechanism: certified bounds of strategies' sensitivities."""
