"""Aggregate records into summary.json; no inference engine is needed."""
