"""Small images of noise, encoded."""

import io
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image


def noise(height: int, width: int, *, seed: int = 0, channels: int = 3) -> np.ndarray:
    """uint8 [height, width, channels] that no two seeds share."""
    draw = np.random.default_rng(seed)
    return draw.integers(0, 256, (height, width, channels), dtype=np.uint8)


def class_folders(top: Path, count: int = 20, *, first: int = 0) -> Path:
    """So many images of 8 by 8 in each of the folders `cat` and `dog`, no two alike."""
    for number in range(2 * count):
        file = top / ("cat", "dog")[number % 2] / f"{number:02}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(encoded(noise(8, 8, seed=first + number)))
    return top


def encoded(image: Any, kind: str = "PNG", **options: Any) -> bytes:
    """The bytes of an array or a Pillow image as a file of that format."""
    if isinstance(image, np.ndarray):
        image = Image.fromarray(image)
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()
