"""How long the jobs between the ONNX file of a model and the engine of a variant took."""

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from tightrope.artifacts.files import read_bytes
from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.errors import ArtifactError, in_one_line

# files by model and variant
Prepared = Mapping[str, Mapping[str, Sequence[str]]]
# by model and variant; None where one of the jobs left none
PrepareSeconds = Mapping[tuple[str, str], float | None]


def prepare_seconds(prepared: Prepared) -> dict[tuple[str, str], float | None]:
    """Return the seconds in which the files of each variant were made, see `PrepareSeconds`.

    Files that several variants share count for each of them.
    """
    return {
        (model, variant): total([job_seconds(path) for path in files])
        for model, variants in prepared.items()
        for variant, files in variants.items()
    }


def total(seconds: Sequence[float | None]) -> float | None:
    """Return the sum, None where one is not known."""
    known = [one for one in seconds if one is not None]
    return math.fsum(known) if len(known) == len(seconds) else None


def job_seconds(path: str) -> float | None:
    """Return the seconds of the job that made a file, None where they were not kept.

    The manifest of an engine has those of its build. Of other files Snakemake writes them into the
    `benchmark` of the rule, a table beside the file.
    """
    if Path(path).name == "engine.json":
        return open_manifest(path, EngineManifest)["build_s"]
    table = Path(path).with_suffix(".tsv")
    if not table.is_file():
        return None
    try:
        rows = csv.DictReader(read_bytes(table).decode().splitlines(), delimiter="\t")
        seconds = float(next(rows)["s"])
    except (KeyError, StopIteration, TypeError, ValueError, csv.Error) as error:
        raise ArtifactError(
            f"{table}: no benchmark of Snakemake ({in_one_line(error)}); delete it and {path}"
        ) from error
    return seconds if math.isfinite(seconds) else None
