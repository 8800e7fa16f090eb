"""Planned jobs as columns of wildcards, as `collect` of Snakemake takes them."""

from tightrope.plan.config import Document
from tightrope.plan.job_inputs import scheme_of
from tightrope.variants import AUTO, Variant

Jobs = list[tuple[str, Variant]]


def columns(jobs: Jobs) -> dict[str, list[str]]:
    """Return the jobs as wildcard values of a path, to be combined with `zip`."""
    return {
        "model": [model for model, _ in jobs],
        "variant": [str(variant) for _, variant in jobs],
    }


def race_columns(jobs: Jobs) -> dict[str, list[str]]:
    """Return each model with each of its devices, in the format of `columns`."""
    found = dict.fromkeys((model, variant.device) for model, variant in jobs)
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
