"""Chance accuracy of a model's evaluation split, and baselines that are no better."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from tightrope.records.accuracy import AccuracyRecord


def chance_of(model: str, judged: Mapping[tuple[str, str], AccuracyRecord]) -> float | None:
    """Return the share of the most frequent label among a model's evaluation examples.

    It is the accuracy of always answering this label, and no less than that of guessing. None
    without labels.
    """
    found = [record.labels or () for (name, _), record in judged.items() if name == model]
    labels = max(found, key=len, default=())
    return max(Counter(labels).values()) / len(labels) if labels else None


def poor_baseline(model: Mapping[str, Any], results: Iterable[Mapping[str, Any]]) -> str | None:
    """Return a remark on the first baseline of a model whose accuracy may be that of chance.

    `model` is an entry of summary.json, `results` are those of the model.
    """
    chance, names = model.get("chance"), list((model.get("baselines") or {}).values())
    for result in results:
        accuracy = result.get("accuracy") or {}
        if result.get("variant") not in names or chance is None or "low" not in accuracy:
            continue
        if accuracy["low"] <= chance:
            shares = [f"{100 * accuracy[end]:.1f}" for end in ("top1", "low", "high")]
            return (
                f"the baseline itself is poor: its accuracy is {shares[0]} % ({shares[1]} to "
                f"{shares[2]}), and always giving the most frequent label has {100 * chance:.1f} "
                "%; check the labels and their order, or train the model longer"
            )
    return None
