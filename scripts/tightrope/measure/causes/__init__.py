"""Remove what holds a variant back by a setting, and measure what that saves."""
