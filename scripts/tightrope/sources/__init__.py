"""Where checkpoints and data come from, one module per kind of source."""
