"""Families: models and those that start from them or learn from them, also through another one."""

from collections.abc import Mapping, Sequence
from typing import Any

from tightrope.plan.derived import parent_of
from tightrope.variants import Variant

Document = dict[str, Any]
Jobs = Sequence[tuple[str, Variant]]
# the models that start from each model, and of None those that start from none
Children = Mapping[str | None, Sequence[str]]
# a root and a device
Family = tuple[str, str]
# of the jobs by model and device, see `columns.by_place`
Variants = Mapping[tuple[str, str], Sequence[Variant]]


def children_of(config: Document) -> Children:
    """Return the models that start from each model, and of None those that start from none."""
    children: dict[str | None, list[str]] = {}
    for name, model in config["models"].items():
        children.setdefault(parent_of(model), []).append(name)
    return children


def members_of(children: Children, root: str) -> list[str]:
    """Return the model, and after each model those that start from it, in their order."""
    own = children.get(root, ())
    return [root, *(name for child in own for name in members_of(children, child))]


def families(config: Document, jobs: Jobs) -> list[Family]:
    """Return the roots from which other models start, each with its devices.

    Only devices on which variants of at least two models of the family are planned.
    """
    children = children_of(config)
    roots = {root: members_of(children, root) for root in children.get(None, ())}
    root_of = {name: root for root, members in roots.items() for name in members}
    devices: dict[str, list[str]] = {root: [] for root in roots}
    for model, device in dict.fromkeys((model, one.place) for model, one in jobs):
        if model in root_of:
            devices[root_of[model]].append(device)
    return [
        (root, device)
        for root, own in devices.items()
        for device in dict.fromkeys(own)
        if own.count(device) > 1
    ]


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


def of_variants(children: Children, variants: Variants, path: str, wildcards: Any) -> list[str]:
    """Return `path` for each variant of the family of the wildcards; see `children_of`."""
    return [
        path.format(model=model, variant=variant)
        for model in of_members(children, variants, "{model}", wildcards)
        for variant in variants[model, wildcards.device]
    ]


def of_members(children: Children, variants: Variants, path: str, wildcards: Any) -> list[str]:
    """Return `path` for each model of the family of the wildcards with jobs on the device."""
    device = wildcards.device
    return [
        path.format(model=model, device=device)
        for model in members_of(children, wildcards.model)
        if (model, device) in variants
    ]
