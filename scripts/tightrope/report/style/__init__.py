"""Number formats and colours of the page."""
