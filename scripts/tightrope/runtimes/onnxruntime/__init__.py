"""What ONNX Runtime engines share."""
