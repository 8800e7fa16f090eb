"""Code that PyTorch engines share."""
