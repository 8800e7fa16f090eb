"""The classifier in PyTorch, its activations and its configuration."""
