"""Source checkpoints: where they come from, how they are fetched and checked."""
