"""The shapes that are measured of a model, and the buckets that engines are built for."""

from typing import Any

from tightrope.runtimes.buckets import PLURALS
from tightrope.signature import BATCH, IMAGE, SEQUENCE

SHORTEST = 32

# the sizes that say what a shape is one of
OF_TEXTS, OF_IMAGES = (SEQUENCE,), ("height", "width")


def shapes_of(config: dict[str, Any], model: str) -> list[dict[str, int]]:
    """Those of `shapes` whose kind is that of the model's task, in their order."""
    sizes = OF_IMAGES if is_of_images(config, model) else OF_TEXTS
    return [shape for shape in config["shapes"] if set(sizes) <= set(shape)]


def shapes_of_model(config: dict[str, Any], wildcards: Any) -> list[dict[str, int]]:
    """The shapes that are measured of that model."""
    return shapes_of(config, wildcards.model)


def is_of_images(config: dict[str, Any], model: str) -> bool:
    """Whether that model classifies images."""
    return config["models"][model]["task"] == IMAGE


def free_sizes(config: dict[str, Any], model: str) -> list[dict[str, int]]:
    """The sizes of its shapes that a request may choose: [batch, sequence], of images [batch]."""
    axes = (BATCH,) if is_of_images(config, model) else (BATCH, SEQUENCE)
    return [{axis: shape[axis] for axis in axes} for shape in shapes_of(config, model)]


def buckets_of(config: dict[str, Any], model: str) -> dict[str, list[int]] | None:
    """`buckets` for one model, None where the engine is to take any shape.

    `auto`: the batches of `shapes`, 1 among them; powers of two from 32 tokens to the longest
    sequence that is measured, which is the last edge. Images have batches only.
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
    """Powers of two from `first` on, below `last`, and then `last` itself."""
    return [*(2**n for n in range(last.bit_length()) if first <= 2**n < last), last]
