"""What a run shows on the terminal."""
