"""Where checkpoints come from, one module with the same five functions per kind of source."""
