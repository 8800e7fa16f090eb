"""What PyTorch engines share."""
