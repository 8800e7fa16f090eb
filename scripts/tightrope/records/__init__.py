"""Records of raw measurements, and statistics across records."""
