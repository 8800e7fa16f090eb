"""Decode image files and preprocess them into model inputs, singly or as a lazy sequence."""

import io
import warnings
from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from PIL import Image, ImageOps

from tightrope.errors import TightropeError
from tightrope.inputs.image_settings import ImageSettings

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
    too_large = f"more than {LARGEST_PIXELS} pixels are not decoded; scale the image down"
    try:
        with warnings.catch_warnings():
            # the size is checked below, before anything is decoded
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            opened = Image.open(io.BytesIO(image), formats=FORMATS)
    except Image.DecompressionBombError as error:
        raise TightropeError(f"{name}: {too_large}") from error
    except Exception as error:  # decoders raise arbitrary errors on other formats
        begin = (
            f"{len(image)} bytes that begin with {image[:8]!r}" if image else "the file is empty"
        )
        raise TightropeError(
            f"{name}: no image that can be read ({begin}); known are {', '.join(FORMATS)}"
        ) from error
    if opened.width * opened.height > LARGEST_PIXELS:
        raise TightropeError(f"{name}: {opened.width} x {opened.height} pixels, {too_large}")
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


def pixel_values(image: bytes, settings: ImageSettings, *, name: str = "image") -> np.ndarray:
    """Return contiguous float32 [3, height, width] of an encoded image, like transformers.

    Raises TightropeError with `name` if `decode_rgb` does, and for an image of another size if the
    settings do not resize.
    """
    decoded = decode_rgb(image, name=name)
    if (size := settings.resize) is not None:
        if isinstance(size, int):
            width, height = (size * edge // min(decoded.size) for edge in decoded.size)
        else:
            height, width = size
        decoded = decoded.resize((width, height), resample=Image.Resampling(settings.resample))
    if decoded.size != (settings.width, settings.height):
        if not settings.crop:
            raise TightropeError(
                f"{name}: {decoded.height} x {decoded.width} pixels, the model takes "
                f"{settings.height} x {settings.width} and its settings do not resize"
            )
        left, top = (decoded.width - settings.width) // 2, (decoded.height - settings.height) // 2
        # what is beyond a smaller image is black
        decoded = decoded.crop((left, top, left + settings.width, top + settings.height))
    channels = np.ascontiguousarray(np.asarray(decoded).transpose(2, 0, 1))
    # one scale and offset rescale and normalize: two passes, equal within float32 precision
    deviation = np.array(settings.std or (1.0,) * 3)
    slope = (settings.rescale or 1.0) / deviation
    offset = -np.array(settings.mean or (0.0,) * 3) / deviation
    values = channels * slope.astype(np.float32)[:, None, None]
    values += offset.astype(np.float32)[:, None, None]
    return values


class EncodedImages(Sequence[dict[str, np.ndarray]]):
    """{"pixel_values": float32 [3, height, width]} of each example, without caching.

    An example has `image` and `name`, or, for the data source `random`, the seed `random`, which
    becomes standard normal numbers. A slice is lazy too. Access raises TightropeError with the name
    of an image that cannot be decoded.
    """

    def __init__(self, examples: Sequence[dict[str, Any]], settings: ImageSettings) -> None:
        """Preprocess as the settings say."""
        self._examples, self._settings = examples, settings
        self._numbers = range(len(examples))

    def __len__(self) -> int:
        """Return the number of examples."""
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> dict[str, np.ndarray]: ...

    @overload
    def __getitem__(self, index: slice) -> "EncodedImages": ...

    def __getitem__(self, index: int | slice) -> "dict[str, np.ndarray] | EncodedImages":
        """Return a decoded example, or a lazy slice of examples."""
        if isinstance(index, slice):
            part = EncodedImages(self._examples, self._settings)
            part._numbers = self._numbers[index]
            return part
        example, settings = self._examples[self._numbers[index]], self._settings
        if "random" in example:
            draw = np.random.default_rng(example["random"])
            shape = (3, settings.height, settings.width)
            return {"pixel_values": draw.standard_normal(shape, dtype=np.float32)}
        values = pixel_values(example["image"], settings, name=example["name"])
        return {"pixel_values": values}
