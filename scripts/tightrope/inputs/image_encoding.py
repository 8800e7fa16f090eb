"""Images as the inputs of a model, each decoded when it is asked for."""

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from tightrope.inputs.image_settings import ImageSettings
from tightrope.inputs.images import pixel_values


class EncodedImages(Sequence[dict[str, np.ndarray]]):
    """{"pixel_values": float32 [3, height, width]} of each example, nothing of it kept.

    An example has `image` and `name`, or, of the data source `random`, the seed `random`, which
    becomes standard normal numbers. A slice is lazy too. Reading one raises TightropeError with
    the name of an image that cannot be decoded.
    """

    def __init__(
        self,
        examples: Sequence[dict[str, Any]],
        settings: ImageSettings,
        *,
        height: int | None = None,
        width: int | None = None,
    ) -> None:
        """Of the size of `settings`, or of `height` and `width`."""
        self._examples = examples
        self._settings = settings.resized(height or settings.height, width or settings.width)
        self._numbers = range(len(examples))

    def __len__(self) -> int:
        """How many examples there are."""
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> dict[str, np.ndarray]: ...

    @overload
    def __getitem__(self, index: slice) -> "EncodedImages": ...

    def __getitem__(self, index: int | slice) -> "dict[str, np.ndarray] | EncodedImages":
        """One decoded example, or the examples of a slice, not yet decoded."""
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
