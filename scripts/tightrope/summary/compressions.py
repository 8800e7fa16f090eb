"""Entries of summary.json on searches for a smaller model."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tightrope.artifacts.files import read_json
from tightrope.statistics import Interval
from tightrope.summary.compression_types import CompressionSearch, Loss, SearchedModel
from tightrope.summary.ratios import ratio_entry


def compression_entries(paths: Iterable[Path | str]) -> list[CompressionSearch]:
    """Return the entry of each search, from `artifacts/{model}/compression.json`."""
    return [entry(Path(path).parent.name, read_json(path)) for path in paths]


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
