"""Time the models of a family in the same rounds, on one device."""
