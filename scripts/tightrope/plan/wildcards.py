"""Wildcards of rules: what they match, and functions of them."""

import inspect
import os
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from tightrope.plan.hosts import Document, planned_on, uses_gpu
from tightrope.variants import parse


def one_of(names: Iterable[str]) -> str:
    """Return a regular expression for any of `names`, the longest that it can match first.

    What several of them begin with is in it once: Snakemake scans it for each path of each job,
    and the names of thousands of variants are a long text.
    """
    known = sorted({*names})
    if len(known) < 2:
        return "".join(map(re.escape, known))
    start = os.path.commonprefix(known)  # noqa: RUF071 of names, not of paths
    rests: dict[str, list[str]] = {}
    for name in known:
        rests.setdefault(name[len(start) :][:1], []).append(name[len(start) :])
    shorter = "?" if rests.pop("", None) else ""
    return f"{re.escape(start)}(?:{'|'.join(map(one_of, rests.values()))}){shorter}"


def paths(path: str, rows: Iterable[str | tuple[Any, ...]], wildcards: Any) -> list[str]:
    """Return the path for each row, whose values take the places of its wildcards in their order.

    A row of one value is that value. Unlike `collect` it is not called where a job parses the
    Snakefile.
    """
    pattern = re.sub(r"\{\w+\}", "{}", path)
    return [pattern.format(*([row] if isinstance(row, str) else row)) for row in rows]


def of_wildcards(function: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """Return the function with its first arguments bound, so that the wildcards are left.

    Snakemake asks for the signature of a function three times per param and job, which takes most
    of the time of a partial: here it is known.
    """
    bound = partial(function, *arguments)
    bound.__signature__ = inspect.signature(bound)  # type: ignore[attr-defined]
    return bound


def of_model(config: dict[str, Any], key: str, wildcards: Any) -> Any:
    """Return the value of a key of the model of the wildcards.

    Not Snakemake's `lookup`, which walks the whole configuration for each job.
    """
    return config["models"][wildcards.model][key]


def place_of(config: Document, wildcards: Any) -> str:
    """Return the place where a job runs: that of its variant, its device, or else of a training.

    A training with the device `auto` is on the GPU where variants for it are planned and it is
    usable here, or a host has it, or where only GPU variants are planned, as on the head node of a
    cluster: without the trained weights they would fail too.
    """
    if variant := wildcards.get("variant"):
        return parse(variant).place
    if device := wildcards.get("device"):
        return str(device)
    keys = config["models"][wildcards.model]
    asked = str((keys["train"] or keys.get("qat") or {"device": "cpu"})["device"])
    if asked != "auto":
        return asked
    machine = planned_on()
    ready = machine["host"]["gpu"] is not None and machine["packages"]["pytorch"] is None
    elsewhere = bool(config["hosts"]) or config["devices"] == ["cuda"]
    return "cuda" if uses_gpu(config) and (ready or elsewhere) else "cpu"


def default_constraint(workflow: Any) -> str | None:
    """Return the constraint that the profile gives to all jobs as it is written, None without one.

    Rules need it, because what they say themselves replaces it.
    """
    resources = workflow.resource_settings.default_resources or {}
    found = resources.get("constraint")
    return None if found is None else str(found.raw)
