"""How long it took to make what is between the ONNX file of a model and the engine of a variant."""

from pathlib import PurePosixPath
from typing import Any

from tightrope.plan.columns import Jobs
from tightrope.plan.job_inputs import int8_files

Config = dict[str, Any]


def prepared_files(config: Config, jobs: Jobs, wildcards: Any = None) -> list[str]:
    """Return the files that hold the seconds, those of all variants without duplicates."""
    return list(dict.fromkeys(path for job in jobs for path in files_of(config, *job)))


def prepared(config: Config, jobs: Jobs, wildcards: Any = None) -> dict[str, dict[str, list[int]]]:
    """Return which of `prepared_files` are those of each model and variant, none in float."""
    places = {path: place for place, path in enumerate(prepared_files(config, jobs))}
    found: dict[str, dict[str, list[int]]] = {}
    for model, variant in jobs:
        own = [places[path] for path in files_of(config, model, variant)]
        found.setdefault(model, {})[str(variant)] = own
    return found


def files_of(config: Config, model: str, variant: Any) -> list[str]:
    """Return the files with the seconds of each job before the engine of a variant, in their order.

    The manifest of an engine has those of its build. Of other files Snakemake writes them into the
    `benchmark` of the rule. Without the search for int8-auto, which records its own seconds.
    """
    paths = map(PurePosixPath, int8_files(config, model, variant))
    return [
        str(path if path.name == "engine.json" else path.with_suffix(".tsv"))
        for path in paths
        if path.parent.name != "search"
    ]
