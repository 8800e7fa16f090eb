"""What each section of the page says."""
