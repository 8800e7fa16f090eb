"""Labelled examples and their splits.

- `source`: sources as written in the configuration
- `sources`: a module per kind of source, which reads it
- `prepare`: writes the distinct examples of a source in their order
- `splits`: roles of examples, and which rows are a split
- `image_store`: checked images on disk, between reading a source and writing them
"""
