"""Render summary.json as the HTML report."""
