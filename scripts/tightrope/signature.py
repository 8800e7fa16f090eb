"""What a model does and takes: its task, the names, types and sizes of its inputs."""

from collections.abc import Mapping
from typing import Any, NamedTuple

TEXT = "text-classification"
IMAGE = "image-classification"

BATCH, SEQUENCE = "batch", "sequence"


class Tensor(NamedTuple):
    """An input; a size that is free is the name of its axis."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]


class Signature(NamedTuple):
    """The inputs of a model, each of which begins with the free axes."""

    inputs: tuple[Tensor, ...]

    @property
    def free(self) -> tuple[str, ...]:
        """The axes that a request may choose the size of, `batch` first."""
        return tuple(axis for axis in self.inputs[0].shape if isinstance(axis, str))

    def request(self, *sizes: int) -> dict[str, tuple[int, ...]]:
        """The shape of each input where the free axes have these sizes."""
        named = dict(zip(self.free, sizes, strict=True))
        return {one.name: tuple(named.get(axis, axis) for axis in one.shape) for one in self.inputs}

    def facts(self) -> list[list[Any]]:
        """The inputs as a JSON document holds them."""
        return [[one.name, one.dtype, list(one.shape)] for one in self.inputs]


def signature(facts: list[list[Any]]) -> Signature:
    """The signature that `Signature.facts` was written from."""
    return Signature(tuple(Tensor(name, dtype, tuple(shape)) for name, dtype, shape in facts))


def of_texts() -> Signature:
    """Token ids and their mask, int64 [batch, sequence]."""
    shape = (BATCH, SEQUENCE)
    return Signature(
        tuple(Tensor(name, "int64", shape) for name in ("input_ids", "attention_mask"))
    )


def of_images(height: int, width: int) -> Signature:
    """Pixels of one size, float32 [batch, 3, height, width]."""
    return Signature((Tensor("pixel_values", "float32", (BATCH, 3, height, width)),))


def of_checkpoint(manifest: Mapping[str, Any]) -> Signature:
    """What the model of a checkpoint's manifest takes."""
    if manifest["task"] == IMAGE:
        return of_images(manifest["height"], manifest["width"])
    return of_texts()


def sizes_of(inputs: Mapping[str, Any]) -> tuple[int, ...]:
    """What a request has chosen: [batch, sequence] of texts, [batch] of images."""
    shape = next(iter(inputs.values())).shape
    return shape[:1] if "pixel_values" in inputs else shape
