"""What is deployed: an engine with programs that use it and prove it."""
