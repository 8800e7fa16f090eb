"""Calibrate, quantize, and search what to quantize."""
