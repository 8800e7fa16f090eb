"""Measure the latency, accuracy and traffic of engines, and audit quantized ones."""
