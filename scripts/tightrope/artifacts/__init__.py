"""Files between steps: written atomically, verified by checksum, or holding a failure."""
