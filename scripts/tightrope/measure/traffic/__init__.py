"""Serve an engine with dynamic batching, under traffic from MLCommons LoadGen."""
