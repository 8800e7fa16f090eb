"""From the configuration to jobs: the only package that reads the configuration."""
