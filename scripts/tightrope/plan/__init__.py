"""From the configuration to jobs: the only part that knows the configuration."""
