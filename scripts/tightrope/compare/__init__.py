"""Comparison of two reports, and of many over time; measures nothing."""
