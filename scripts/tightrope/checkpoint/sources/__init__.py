"""One module per kind of checkpoint source, each with the same five functions."""
