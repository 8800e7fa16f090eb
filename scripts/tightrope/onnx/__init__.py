"""ONNX files: export, simplify, edit, run."""
