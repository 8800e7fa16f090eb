"""Small images of noise, encoded."""

import io
from typing import Any

import numpy as np
from PIL import Image


def noise(height: int, width: int, *, seed: int = 0, channels: int = 3) -> np.ndarray:
    """uint8 [height, width, channels] that no two seeds share."""
    draw = np.random.default_rng(seed)
    return draw.integers(0, 256, (height, width, channels), dtype=np.uint8)


def encoded(image: Any, kind: str = "PNG", **options: Any) -> bytes:
    """The bytes of an array or a Pillow image as a file of that format."""
    if isinstance(image, np.ndarray):
        image = Image.fromarray(image)
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()
