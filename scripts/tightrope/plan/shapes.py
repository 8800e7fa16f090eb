"""Measured shapes of a model, and the shape buckets of its engines."""

from collections.abc import Iterable
from typing import Any

from tightrope.runtimes.buckets import PLURALS
from tightrope.signature import BATCH, IMAGE, SEQUENCE

SHORTEST = 32

# the sizes that distinguish shapes of texts and of images
OF_TEXTS, OF_IMAGES = (SEQUENCE,), ("height", "width")
# how many tokens of a shape of texts are no padding
TOKENS = "tokens"


def shapes_of(config: dict[str, Any], model: str) -> list[dict[str, int]]:
    """Return the `shapes` of the kind of the model's task, in their order."""
    sizes = OF_IMAGES if is_of_images(config, model) else OF_TEXTS
    return [shape for shape in config["shapes"] if set(sizes) <= set(shape)]


def shapes_of_model(config: dict[str, Any], wildcards: Any) -> list[dict[str, int]]:
    """Return the measured shapes of the model."""
    return shapes_of(config, wildcards.model)


def full_shapes_of_model(config: dict[str, Any], wildcards: Any) -> list[dict[str, int]]:
    """Return the measured shapes of the model as if full, without `tokens`, each once.

    An operator computes padding like any other token.
    """
    return distinct(
        {name: size for name, size in shape.items() if name != TOKENS}
        for shape in shapes_of(config, wildcards.model)
    )


def distinct(shapes: Iterable[dict[str, int]]) -> list[dict[str, int]]:
    """Return each shape once, in their order."""
    return list({tuple(sorted(shape.items())): shape for shape in shapes}.values())


def is_of_images(config: dict[str, Any], model: str) -> bool:
    """Return whether the model classifies images."""
    return config["models"][model]["task"] == IMAGE


def free_sizes(config: dict[str, Any], model: str) -> list[dict[str, int]]:
    """Return the free sizes of a model's shapes, each once: [batch, sequence], images [batch]."""
    axes = (BATCH,) if is_of_images(config, model) else (BATCH, SEQUENCE)
    return distinct({axis: shape[axis] for axis in axes} for shape in shapes_of(config, model))


def buckets_of(config: dict[str, Any], model: str) -> dict[str, list[int]] | None:
    """Return `buckets` for one model, None for engines with dynamic shapes.

    `auto`: the batches of `shapes` and 1; powers of two from 32 tokens to the longest measured
    sequence, which is the last bucket. Images have batches only.
    """
    if config["buckets"] is None:
        return None
    if config["buckets"] != "auto":
        axes = (BATCH,) if is_of_images(config, model) else PLURALS
        return {axis: config["buckets"][axis] for axis in axes}
    shapes = shapes_of(config, model)
    found = {BATCH: sorted({1, *(shape[BATCH] for shape in shapes)})}
    if not is_of_images(config, model):
        lengths = [config["models"][model]["max_sequence"], *(one[SEQUENCE] for one in shapes)]
        found[SEQUENCE] = powers_of_two(SHORTEST, max(lengths))
    return found


def powers_of_two(first: int, last: int) -> list[int]:
    """Return the powers of two from `first` on, below `last`, and then `last` itself."""
    return [*(2**n for n in range(last.bit_length()) if first <= 2**n < last), last]
