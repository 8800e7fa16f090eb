"""Paths of the files that a measurement of one variant reads."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self


@dataclass(frozen=True)
class Artifacts:
    """Manifests of an engine, its checkpoint and a split, and the ONNX file where required."""

    engine: Path
    checkpoint: Path
    data: Path
    onnx: Path | None = None

    @classmethod
    def of(cls, inputs: Any) -> Self:
        """Return the paths from the inputs of a Snakemake job."""
        paths = dict(inputs.items())
        onnx = paths.get("onnx")
        return cls(
            Path(paths["engine"]),
            Path(paths["checkpoint"]),
            Path(paths["data"]),
            Path(onnx) if onnx else None,
        )
