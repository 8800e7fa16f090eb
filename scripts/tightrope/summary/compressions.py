"""Entries of summary.json on searches for a smaller model."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypedDict

from tightrope.artifacts.content import read_artifact
from tightrope.statistics import Interval
from tightrope.summary.compression_types import CompressionSearch, Loss, SearchedModel
from tightrope.summary.ratios import ratio_entry


class AskedFor(TypedDict):
    """The target of a search."""

    speedup: float
    variant: str
    shape: dict[str, int]


class Reached(TypedDict):
    """The speed-up that a search reached."""

    speedup: float | None


class Target(TypedDict):
    """What was asked for and reached, and by which share that is short."""

    asked: AskedFor
    reached: Reached
    short_by: float | None


class Form(TypedDict):
    """The structure of a model of a search."""

    depths: list[int]
    width: int | None


class Rung(TypedDict):
    """A model of a search, with None for all that could not be measured."""

    factor: float
    structure: Form
    parameters: int | None
    delta: float | None
    delta_low: float | None
    delta_high: float | None
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None
    seconds: float
    reason: str | None


class Searched(TypedDict):
    """What the rule search_compression writes, as far as it is reported."""

    target: Target
    budget: float
    ended: str
    rungs: list[Rung]
    chosen: float | None


def compression_entries(paths: Iterable[Path | str]) -> list[CompressionSearch]:
    """Return the entry of each search, from `artifacts/{model}/compression.json`."""
    return [entry(Path(path).parent.name, read_artifact(path, Searched)) for path in paths]


def entry(model: str, document: Mapping[str, Any]) -> CompressionSearch:
    """Return the entry of a search for `model`."""
    target = document["target"]
    asked = target["asked"]
    return {
        "model": model,
        "variant": asked["variant"],
        "shape": asked["shape"],
        "target": asked["speedup"],
        "budget_points": 100 * document["budget"],
        "ended": document["ended"],
        "chosen": document["chosen"],
        "reached": target["reached"]["speedup"],
        "short_by": target["short_by"],
        "models": [searched(rung) for rung in document["rungs"]],
    }


def searched(rung: Mapping[str, Any]) -> SearchedModel:
    """Return the entry of a model of a search."""
    ends = [rung[name] for name in ("speedup", "speedup_low", "speedup_high")]
    return {
        "factor": rung["factor"],
        "blocks": rung["structure"]["depths"],
        "neurons": rung["structure"]["width"],
        "parameters": rung["parameters"],
        "accuracy": loss(rung),
        "speedup": None if ends[0] is None else ratio_entry(Interval(*ends)),
        "seconds": rung["seconds"],
        "reason": rung["reason"],
    }


def loss(rung: Mapping[str, Any]) -> Loss | None:
    """Return the change of accuracy of a model, None where it could not be run."""
    if rung["delta"] is None:
        return None
    return {"delta": rung["delta"], "low": rung["delta_low"], "high": rung["delta_high"]}
