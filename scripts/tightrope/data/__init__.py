"""Labelled examples and their splits."""
