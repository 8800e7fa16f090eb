"""From summary.json to the page."""
