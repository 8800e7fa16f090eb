"""Signature of a model: its task, and names, dtypes and sizes of its inputs."""

from collections.abc import Mapping
from typing import Any, NamedTuple

TEXT = "text-classification"
IMAGE = "image-classification"

BATCH, SEQUENCE = "batch", "sequence"


class Tensor(NamedTuple):
    """An input; a free size is the name of its axis."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]


class Signature(NamedTuple):
    """The inputs of a model, each starting with the free axes."""

    inputs: tuple[Tensor, ...]

    @property
    def free(self) -> tuple[str, ...]:
        """Return the axes with a size that the request chooses, `batch` first."""
        return tuple(axis for axis in self.inputs[0].shape if isinstance(axis, str))

    def request(self, *sizes: int) -> dict[str, tuple[int, ...]]:
        """Return the shape of each input for the given sizes of the free axes."""
        named = dict(zip(self.free, sizes, strict=True))
        return {
            one.name: tuple(named[axis] if isinstance(axis, str) else axis for axis in one.shape)
            for one in self.inputs
        }

    def facts(self) -> list[list[Any]]:
        """Return the inputs as JSON-compatible lists."""
        return [[one.name, one.dtype, list(one.shape)] for one in self.inputs]


def signature(facts: list[list[Any]]) -> Signature:
    """Return the signature from the output of `Signature.facts`."""
    return Signature(tuple(Tensor(name, dtype, tuple(shape)) for name, dtype, shape in facts))


def of_texts() -> Signature:
    """Token ids and attention mask, int64 [batch, sequence]."""
    shape = (BATCH, SEQUENCE)
    return Signature(
        tuple(Tensor(name, "int64", shape) for name in ("input_ids", "attention_mask"))
    )


def of_images(height: int, width: int) -> Signature:
    """Pixels of a fixed size, float32 [batch, 3, height, width]."""
    return Signature((Tensor("pixel_values", "float32", (BATCH, 3, height, width)),))


def of_checkpoint(manifest: Mapping[str, Any]) -> Signature:
    """Return the signature of the model of a checkpoint's manifest."""
    if manifest["task"] == IMAGE:
        return of_images(manifest["height"], manifest["width"])
    return of_texts()


def sizes_of(inputs: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the free sizes of a request: [batch, sequence] for texts, [batch] for images."""
    shape = next(iter(inputs.values())).shape
    return shape[:1] if "pixel_values" in inputs else shape
