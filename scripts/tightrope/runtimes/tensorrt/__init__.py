"""Code that TensorRT engines share."""
