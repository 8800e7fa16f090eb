"""Planned jobs as columns of wildcards, and the paths that they stand for."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tightrope.plan.config import Document
from tightrope.plan.job_inputs import scheme_of
from tightrope.variants import AUTO, Variant

Jobs = list[tuple[str, Variant]]
Columns = Mapping[str, Sequence[str]]


def columns(jobs: Jobs) -> dict[str, list[str]]:
    """Return the jobs as wildcard values of a path, to be combined with `zip`."""
    return {
        "model": [model for model, _ in jobs],
        "variant": [str(variant) for _, variant in jobs],
    }


def product(models: Iterable[str], splits: Sequence[str]) -> dict[str, list[str]]:
    """Return each model with each split, in the format of `columns`."""
    found = [(model, split) for model in models for split in splits]
    return {"model": [model for model, _ in found], "split": [split for _, split in found]}


def paths(path: str, rows: Columns, wildcards: Any) -> list[str]:
    """Return the path of each row of the columns.

    As a function of the wildcards it is not called where a job parses the Snakefile, as `collect`
    would be.
    """
    return [
        path.format(**dict(zip(rows, row, strict=True))) for row in zip(*rows.values(), strict=True)
    ]


def by_place(jobs: Jobs) -> dict[tuple[str, str], list[Variant]]:
    """Return the variants of the jobs by model and place, see `variants`."""
    found: dict[tuple[str, str], list[Variant]] = {}
    for model, variant in jobs:
        found.setdefault((model, variant.place), []).append(variant)
    return found


def race_columns(jobs: Jobs) -> dict[str, list[str]]:
    """Return each model with each of its places, in the format of `columns`."""
    found = dict.fromkeys((model, variant.place) for model, variant in jobs)
    return {"model": [model for model, _ in found], "device": [device for _, device in found]}


def search_columns(config: Document, jobs: Jobs) -> dict[str, list[str]]:
    """Return model, scheme and calibration of each search, in the format of `columns`."""
    found = dict.fromkeys(
        (model, scheme, calibration)
        for model, variant in jobs
        if variant.precision == AUTO
        and (scheme := scheme_of(config, variant))
        and (calibration := variant.calibration)
    )
    names = ("model", "scheme", "calibration")
    return {name: [search[place] for search in found] for place, name in enumerate(names)}
