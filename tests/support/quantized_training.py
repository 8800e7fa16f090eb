"""A tiny model that is trained with quantized values, and every file made from it."""

import io
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from tightrope.artifacts.manifest import write_manifest
from tiny_model import LONGEST, SAMPLES, TinyModel

RECIPE = {
    **{"epochs": 0.2, "batch": 16, "learning_rate": 1e-3, "sequence": LONGEST, "amp": "off"},
    "scheme": "u8s8",
}
METHOD = f"qat-{SAMPLES}"


class QuantizedTraining(NamedTuple):
    """Paths of the files; the quantized ONNX has the learnt ranges."""

    data: Path
    checkpoint: Path
    simplified: Path
    cache: Path
    u8s8: Path

    @property
    def samples(self) -> dict[str, str]:
        """What an engine that quantizes itself reads."""
        data = self.data.parent / "splits" / "calibration.json"
        paths = {"onnx": self.simplified, "calibration": self.cache, "data": data}
        return {name: str(path) for name, path in {**paths, "checkpoint": self.checkpoint}.items()}


def files_of(tiny: TinyModel, folder: Path) -> QuantizedTraining:
    """Where the files lie in `folder`."""
    names = ("checkpoint/checkpoint.json", "simplified.onnx", f"{METHOD}.json", "u8s8.onnx")
    return QuantizedTraining(tiny.data, *(folder / name for name in names))


def make_quantized_training(
    tiny: TinyModel,
    folder: Path,
    recipe: dict[str, Any] = RECIPE,
    repair: dict[str, Any] | None = None,
) -> None:
    """Train the tiny model on, and make the files; imports PyTorch, so it belongs in a child.

    The quantized ONNX has the repair.
    """
    from tightrope.int8.calibrate import calibrate
    from tightrope.int8.quantize import quantize_onnx
    from tightrope.onnx.export import export_onnx
    from tightrope.onnx.simplify import simplify_onnx
    from tightrope.training.train import TrainingSettings, train_model

    made, source = files_of(tiny, folder), folder / "source" / "checkpoint.json"
    shutil.copytree(tiny.checkpoint.parent, source.parent)
    source.unlink()
    facts = {"task": "text-classification", "source": "model:tiny", "revision": None}
    write_manifest(source, **facts)
    settings = TrainingSettings(recipe=None, qat=recipe, inputs={}, threads=1, seed=0)
    files = {"source": source, "data": tiny.split("train"), "terminal": io.StringIO()}
    train_model(made.checkpoint, settings, **files)
    export_onnx(made.checkpoint, folder / "model.onnx", threads=1)
    timing = tiny.split("timing")
    simplify_onnx(folder / "model.onnx", made.checkpoint, timing, made.simplified, threads=1)
    calibrate(
        *(made.simplified, tiny.split("calibration"), made.checkpoint, made.cache),
        **{"method": "qat", "samples": SAMPLES, "max_sequence": LONGEST},
        **{"percentile": None, "threads": 1, "libraries": {}},
    )
    quantize_onnx(made.simplified, made.cache, made.u8s8, scheme="u8s8", repair=repair)
