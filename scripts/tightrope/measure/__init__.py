"""Latency, accuracy and audit of an engine."""
