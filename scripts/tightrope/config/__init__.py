"""The configuration: its keys as types, their JSON Schema, and a file of the user with defaults."""
