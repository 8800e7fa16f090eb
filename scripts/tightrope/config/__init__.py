"""The configuration: its keys as types, their JSON Schema, and a file of the user with defaults.

- `types`: what a value may be
- `keys`, `models`: the keys, those of a model apart, each with its default
- `schema`: the JSON Schema of them
- `read`: a user's file, checked against it and filled in; `parents`: what a model takes of another
"""
