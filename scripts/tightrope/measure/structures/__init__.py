"""Latency of smaller structures of a model, and the choice of one that meets a target."""
