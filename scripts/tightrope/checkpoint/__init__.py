"""The weights that a model starts from."""
