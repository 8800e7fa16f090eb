"""An engine as a service under load."""
