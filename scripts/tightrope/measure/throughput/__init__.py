"""Throughput of an engine by instances, threads and batch."""
