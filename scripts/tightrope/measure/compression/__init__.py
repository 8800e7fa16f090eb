"""Search for the smallest model within an accuracy budget."""
