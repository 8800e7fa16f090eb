"""Facts about this machine: hardware, missing requirements and load of other programs."""
