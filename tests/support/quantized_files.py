"""The tiny model quantized again: with a repair, by other ranges; and what a file answers."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from tightrope.inputs.arrays import Arrays
from tightrope.int8.calibrate import read_cache, write_cache
from tightrope.int8.quantize import quantize_onnx
from tightrope.onnx.file import load_onnx
from tightrope.onnx.session import run_onnx
from tiny_model import TinyModel


def quantized(
    tiny: TinyModel,
    target: Path,
    scheme: str = "u8s8",
    *,
    cache: Path | None = None,
    may_stay_in_float: bool = False,
    **repair: Any,
) -> onnx.ModelProto:
    """The file of that scheme with these repairs, written to `target`."""
    paths, options = (tiny.simplified, cache or tiny.minmax, target), {"scheme": scheme}
    quantize_onnx(*paths, **options, repair=repair, may_stay_in_float=may_stay_in_float)
    return load_onnx(target)


def with_ranges(tiny: TinyModel, target: Path, ranges: dict[str, list[float]]) -> Path:
    """The cache by minmax with other ranges of these tensors, without those that are empty."""
    cache = read_cache(tiny.minmax, model=tiny.simplified)
    known = {**cache.pop("ranges"), **ranges}
    del cache["schema"]
    write_cache(target, **cache, ranges={name: one for name, one in known.items() if one})
    return target


def answers(model: onnx.ModelProto | Path, batches: list[Arrays]) -> np.ndarray:
    """Its logits on ONNX Runtime's CPU provider, [examples, classes]."""
    found = load_onnx(model) if isinstance(model, Path) else model
    return np.concatenate(run_onnx(found, batches, threads=1))
