"""From images to the inputs of the engine."""

import io
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM")


def load_request(folder, facts):
    """Return batches(images), which yields indices and inputs, float32 [batch, 3, height, width].

    An image is its path, or the bytes of its file.
    """
    size = facts["batch"]

    def batches(images):
        for start in range(0, len(images), size):
            some = images[start : start + size]
            pixels = [pixel_values(image, facts["image"]) for image in some]
            yield list(range(start, start + len(some))), {"pixel_values": np.stack(pixels)}

    return batches


def pixel_values(image, settings):
    """Return float32 [3, height, width] of the path or bytes of an image file."""
    file = io.BytesIO(image) if isinstance(image, bytes) else Path(image)
    rgb = to_rgb(ImageOps.exif_transpose(Image.open(file, formats=FORMATS)))
    if (resize := settings["resize"]) is not None:
        if not isinstance(resize, list):  # the shorter edge
            resize = [resize * edge // min(rgb.size) for edge in reversed(rgb.size)]
        rgb = rgb.resize((resize[1], resize[0]), resample=Image.Resampling(settings["resample"]))
    pixels, size = np.asarray(rgb), (settings["height"], settings["width"])
    if settings["crop"]:
        pixels = center(pixels, *size)
    if pixels.shape[:2] != size:
        raise ValueError(f"{pixels.shape[:2]} pixels (height, width), the model takes {size}")
    deviation = np.array(settings["std"] or [1.0] * 3)
    offset = -np.array(settings["mean"] or [0.0] * 3) / deviation
    steps = (settings["rescale"] or 1.0) / deviation, offset
    slope, offset = (values.astype(np.float32)[:, None, None] for values in steps)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)) * slope + offset


def center(rgb, height, width):
    """Return the middle of uint8 [rows, columns, 3], padded with black where it is smaller."""
    missing = max(0, height - rgb.shape[0]), max(0, width - rgb.shape[1])
    edges = [((more + 1) // 2, more // 2) for more in missing]
    rgb = np.pad(rgb, [*edges, (0, 0)])
    top, left = (rgb.shape[0] - height) // 2, (rgb.shape[1] - width) // 2
    return rgb[top : top + height, left : left + width]


def to_rgb(image):
    """Return the image in mode RGB: transparency over white, 16-bit grey as 8 bits."""
    if image.has_transparency_data:
        rgba = image.convert("RGBA")
        white = Image.new("RGBA", rgba.size, "white")
        return Image.alpha_composite(white, rgba).convert("RGB")
    if image.mode.startswith("I"):
        grey = np.asarray(image).astype(np.int64)
        image = Image.fromarray(((grey + 128) // 257).astype(np.uint8))
    return image.convert("RGB")
