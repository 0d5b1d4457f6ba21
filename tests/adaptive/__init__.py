"""Steps chosen after earlier answers, against every tree of choices."""
