"""Labelled examples, split."""
