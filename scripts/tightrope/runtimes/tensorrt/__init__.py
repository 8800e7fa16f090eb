"""What TensorRT engines share."""
