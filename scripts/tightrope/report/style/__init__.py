"""Numbers and colours of the page."""
