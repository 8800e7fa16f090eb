"""Folders of what jobs make, and paths of the files that a measurement of one variant reads."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

# where files are that are made, below the folder of the run or the prefix of a module
FOLDERS = ("artifacts", "reports")


@dataclass(frozen=True)
class Artifacts:
    """Manifests of an engine, its checkpoint and a split."""

    engine: Path
    checkpoint: Path
    data: Path

    @classmethod
    def of(cls, inputs: Any) -> Self:
        """Return the paths from the inputs of a Snakemake job."""
        known = cls.__dataclass_fields__
        return cls(**{name: Path(path) for name, path in inputs.items() if name in known})
