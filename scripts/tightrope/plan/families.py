"""Families: models and those that start from them or learn from them, also through another one."""

from collections.abc import Sequence
from typing import Any

from tightrope.plan.derived import parent_of
from tightrope.variants import Variant

Document = dict[str, Any]
Jobs = Sequence[tuple[str, Variant]]
# a root and a device
Family = tuple[str, str]


def members_of(config: Document, root: str) -> list[str]:
    """Return the model, and after each model those that start from it, in their order."""
    children = [name for name, model in config["models"].items() if parent_of(model) == root]
    return [root, *(name for child in children for name in members_of(config, child))]


def families(config: Document, jobs: Jobs) -> list[Family]:
    """Return the roots from which other models start, each with its devices.

    Only devices on which variants of at least two models of the family are planned.
    """
    found: list[Family] = []
    for root in [name for name, model in config["models"].items() if parent_of(model) is None]:
        members = members_of(config, root)
        places = dict.fromkeys((model, one.device) for model, one in jobs if model in members)
        devices = [device for _, device in places]
        found += [(root, one) for one in dict.fromkeys(devices) if devices.count(one) > 1]
    return found


def family_columns(config: Document, jobs: Jobs) -> dict[str, list[str]]:
    """Return the families in the format of `columns.columns`."""
    found = families(config, jobs)
    return {"model": [root for root, _ in found], "device": [device for _, device in found]}


def family_records(config: Document, jobs: Jobs) -> dict[Family, list[str]]:
    """Return the record of each family, see `plan.records`."""
    return {
        (root, device): [f"reports/{root}/{device}.family.json"]
        for root, device in families(config, jobs)
    }


def of_variants(config: Document, jobs: Jobs, path: str, wildcards: Any) -> list[str]:
    """Return `path` for each variant of the family of the wildcards."""
    return [
        path.format(model=model, variant=variant)
        for model in of_members(config, jobs, "{model}", wildcards)
        for name, variant in jobs
        if (name, variant.device) == (model, wildcards.device)
    ]


def of_members(config: Document, jobs: Jobs, path: str, wildcards: Any) -> list[str]:
    """Return `path` for each model of the family of the wildcards with jobs on the device."""
    on_device = {name for name, variant in jobs if variant.device == wildcards.device}
    return [
        path.format(model=model, device=wildcards.device)
        for model in members_of(config, wildcards.model)
        if model in on_device
    ]
