"""Code that ONNX Runtime engines share."""
