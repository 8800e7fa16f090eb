"""Pictures of ONNX graphs."""
