"""Calibrate, quantize, and search for the operators to quantize."""
