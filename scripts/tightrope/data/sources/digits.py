"""Scikit-learn's 1,797 handwritten digits, images of 8 x 8 pixels; needs no network."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tightrope.artifacts.provenance import library_versions
from tightrope.data.splits import Material

if TYPE_CHECKING:
    from tightrope.data.image_store import ImageStore

WHITE = 16


def local_files(_source: str, _location: str, **_settings: Any) -> list[Path]:
    """Return no files."""
    return []


def libraries(_source: str, _location: str, **_settings: Any) -> dict[str, str | None]:
    """Return versions of the libraries that hold, decode and store the digits."""
    return library_versions("pillow", "pyarrow", "scikit-learn")


def read(_source: str, _location: str, store: "ImageStore", **_settings: Any) -> Material:
    """Return the digits as grey PNG files of 8 x 8 pixels, in a single pool."""
    import numpy
    from PIL import Image
    from sklearn.datasets import load_digits

    digits = load_digits()
    grey = numpy.round(digits.images * 255 / WHITE).astype(numpy.uint8)
    rows = []
    for number, (pixels, label) in enumerate(zip(grey, digits.target.tolist(), strict=True)):
        stream = io.BytesIO()
        Image.fromarray(pixels).save(stream, "PNG")
        rows.append((store.add(f"digits/{number:04}.png", stream.getvalue()), label))
    return Material([str(name) for name in digits.target_names], rows)
