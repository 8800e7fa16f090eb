"""What was measured, raw; and what records say of each other."""
