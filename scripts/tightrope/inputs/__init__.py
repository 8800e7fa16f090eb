"""Preprocessing of examples into model inputs.

- `arrays`: input arrays and their batches
- `encode`: the examples of a split as arrays, and the timed batches
- `texts`: token ids
- `images`, `image_settings`: pixels, and how they are preprocessed
- `reference`: the prepared model compared with what was brought
"""
