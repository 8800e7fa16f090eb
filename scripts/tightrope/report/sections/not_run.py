"""Variants without a result, by reason."""

from collections.abc import Iterable, Mapping
from typing import Any

Record = Mapping[str, Any]


def grouped(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, list[Any]]]:
    """Return (reason, variants) pairs, in order of first appearance."""
    groups: dict[Any, list[Any]] = {}
    for reason, variant in pairs:
        groups.setdefault(reason or "no reason was recorded", []).append(variant)
    return list(groups.items())


def not_run(results: Iterable[Record]) -> dict[str, list[tuple[str, list[Any]]]]:
    """Return (reason, [(model, variants)]) for `failed` and for `unavailable` results."""
    listed = list(results)
    return {
        status: [
            (reason, grouped(pairs))
            for reason, pairs in grouped(
                (result.get("reason"), (result.get("model"), result.get("variant")))
                for result in listed
                if result.get("status") == status
            )
        ]
        for status in ("failed", "unavailable")
    }
