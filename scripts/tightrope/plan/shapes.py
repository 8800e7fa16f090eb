"""Which of the configured shapes are those of a model: texts have tokens, images a size."""

from typing import Any

from tightrope.signature import BATCH, SEQUENCE
from tightrope.tasks import IMAGE

# the sizes that say what a shape is one of
OF_TEXTS, OF_IMAGES = (SEQUENCE,), ("height", "width")


def shapes_of(config: dict[str, Any], model: str) -> list[dict[str, int]]:
    """Those of `shapes` whose kind is that of the model's task, in their order."""
    sizes = OF_IMAGES if is_of_images(config, model) else OF_TEXTS
    return [shape for shape in config["shapes"] if set(sizes) <= set(shape)]


def is_of_images(config: dict[str, Any], model: str) -> bool:
    """Whether that model classifies images."""
    return config["models"][model]["task"] == IMAGE


def free_sizes(config: dict[str, Any], model: str) -> list[dict[str, int]]:
    """The sizes of its shapes that a request may choose: [batch, sequence], of images [batch]."""
    axes = (BATCH,) if is_of_images(config, model) else (BATCH, SEQUENCE)
    return [{axis: shape[axis] for axis in axes} for shape in shapes_of(config, model)]
