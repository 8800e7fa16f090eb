"""Measure the latency, accuracy, traffic and throughput of engines."""
