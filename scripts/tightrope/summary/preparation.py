"""How long the jobs between the ONNX file of a model and the engine of a variant took."""

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from tightrope.artifacts.files import read_bytes
from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.errors import ArtifactError, in_one_line

# positions in the list of files, by model and variant
Prepared = Mapping[str, Mapping[str, Sequence[int]]]
# by model and variant; None where one of the jobs left none
PrepareSeconds = Mapping[tuple[str, str], float | None]


def prepare_seconds(
    prepared: Prepared, files: Sequence[str]
) -> dict[tuple[str, str], float | None]:
    """Return the seconds of the jobs before the build of each variant, see `PrepareSeconds`.

    `files` hold them. Jobs that several variants share count for each of them.
    """
    seconds = [job_seconds(path) for path in files]
    return {
        (model, variant): total([seconds[place] for place in places])
        for model, variants in prepared.items()
        for variant, places in variants.items()
    }


def total(seconds: Sequence[float | None]) -> float | None:
    """Return the sum, None where one is not known."""
    known = [one for one in seconds if one is not None]
    return math.fsum(known) if len(known) == len(seconds) else None


def job_seconds(path: str) -> float | None:
    """Return the seconds in the manifest of an engine or in a benchmark of Snakemake.

    None where Snakemake measured none, as of a job of an instant.
    """
    if Path(path).name == "engine.json":
        return open_manifest(path, EngineManifest)["build_s"]
    try:
        rows = csv.DictReader(read_bytes(path).decode().splitlines(), delimiter="\t")
        seconds = float(next(rows)["s"])
    except (KeyError, StopIteration, TypeError, ValueError, csv.Error) as error:
        raise ArtifactError(
            f"{path}: no benchmark of Snakemake ({in_one_line(error)}); delete it and run again"
        ) from error
    return seconds if math.isfinite(seconds) else None
