"""Measure the first call of an engine after a pause."""
