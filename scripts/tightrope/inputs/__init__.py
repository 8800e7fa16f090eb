"""From examples to arrays."""
