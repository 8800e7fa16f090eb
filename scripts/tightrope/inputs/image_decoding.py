"""Decode image files to 8-bit RGB, with one-line errors."""

import io
import warnings

import numpy as np
from PIL import Image, ImageOps

from tightrope.errors import TightropeError

# Accepted formats; other Pillow formats run programs or are rarely images.
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
# 4 bytes each when decoded; a photograph of the largest phones has about 200 million.
LARGEST_PIXELS = 50_000_000
DEEP_MODES = ("I", "I;16", "I;16B", "I;16L", "I;16N")


def decode_rgb(image: bytes, *, name: str) -> Image.Image:
    """Decode the image as it is meant to be displayed, in mode RGB.

    Applies the EXIF orientation, composites transparency over white, scales 16-bit grey to 8 bits,
    converts CMYK without its colour profile, and uses the first frame of an animation. Raises
    TightropeError with `name` if it has no known image format, is broken or truncated, has more
    than LARGEST_PIXELS (checked before decoding), or has float pixels.
    """
    try:
        with warnings.catch_warnings():
            # the size is checked below, before anything is decoded
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            opened = Image.open(io.BytesIO(image), formats=FORMATS)
    except Image.DecompressionBombError as error:
        raise TightropeError(f"{name}: {too_large()}") from error
    except Exception as error:  # decoders raise arbitrary errors on other formats
        raise TightropeError(
            f"{name}: no image that can be read ({kind_of(image)}); known are {', '.join(FORMATS)}"
        ) from error
    if opened.width * opened.height > LARGEST_PIXELS:
        raise TightropeError(f"{name}: {opened.width} x {opened.height} pixels, {too_large()}")
    try:
        opened.load()
        return to_rgb(ImageOps.exif_transpose(opened), name)
    except TightropeError:
        raise
    except Exception as error:  # decoders raise arbitrary errors on damaged data
        reason = " ".join(str(error).split()) or type(error).__name__
        raise TightropeError(
            f"{name}: the image is broken or cut off ({reason}); replace it or take it out"
        ) from error


def too_large() -> str:
    """Return the error text for an image that is too large to decode."""
    return f"more than {LARGEST_PIXELS} pixels are not decoded; scale the image down"


def kind_of(image: bytes) -> str:
    """Describe bytes that are no image, for an error."""
    return f"{len(image)} bytes that begin with {image[:8]!r}" if image else "the file is empty"


def to_rgb(image: Image.Image, name: str) -> Image.Image:
    """Convert a loaded image to RGB; raise TightropeError if its pixels have no known range."""
    if image.has_transparency_data:
        rgba = image.convert("RGBA")
        white = Image.new("RGBA", rgba.size, "white")
        return Image.alpha_composite(white, rgba).convert("RGB")
    if image.mode in DEEP_MODES:
        grey = np.asarray(image).astype(np.int64)
        if grey.min() >= 0 and grey.max() < 2**16:
            image = Image.fromarray(((grey + 128) // 257).astype(np.uint8))
    if image.mode in ("F", *DEEP_MODES):
        raise TightropeError(
            f"{name}: pixels of mode {image.mode} have no known range; save it with 8 or 16 bits"
        )
    return image.convert("RGB")
