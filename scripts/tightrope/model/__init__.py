"""PyTorch classifier, its activation functions and its configuration."""
