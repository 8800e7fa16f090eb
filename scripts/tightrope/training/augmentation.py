"""Random augmentations of images that preserve the label."""

import numpy as np

from tightrope.inputs.arrays import Arrays

# padding on each side before the random crop, as a fraction of the image's side
MARGIN = 1 / 8


def flip_crop(row: Arrays, generator: np.random.Generator) -> Arrays:
    """Shift the image by up to an eighth of its side, and mirror it with probability 0.5.

    `pixel_values` are float32 [3, height, width], contiguous before and after. Padding is zero, the
    mean of normalized pixels (He et al. 2016, "Deep Residual Learning for Image Recognition", 4.2,
    with 4 of 32 pixels).
    """
    image = row["pixel_values"]
    height, width = image.shape[1:]
    down, right = round(MARGIN * height), round(MARGIN * width)
    padded = np.pad(image, ((0, 0), (down, down), (right, right)))
    top, left = generator.integers(0, 2 * down + 1), generator.integers(0, 2 * right + 1)
    crop = padded[:, top : top + height, left : left + width]
    mirrored = crop[:, :, ::-1] if generator.random() < 0.5 else crop
    return {**row, "pixel_values": np.ascontiguousarray(mirrored)}


# keys are the names in the configuration
AUGMENTATIONS = {"off": None, "flip_crop": flip_crop}
