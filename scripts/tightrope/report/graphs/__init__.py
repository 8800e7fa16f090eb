"""Diagrams of ONNX graphs."""
