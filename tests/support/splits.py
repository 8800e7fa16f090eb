"""Prepared data with the manifests of all their splits, as the rules make them."""

from pathlib import Path
from typing import Any

from tightrope.data.prepare import prepare_data
from tightrope.data.splits import SPLITS, split_data
from tightrope.signature import IMAGE


def split_of(data: Path, split: str) -> Path:
    """Where `prepare_splits` writes the manifest of a split."""
    return data.parent / "splits" / f"{split}.json"


def prepare_splits(
    manifest: Path, *, source: str, splits: dict[str, int | None], pool: int, **keys: Any
) -> dict[str, int]:
    """Prepare data and split them; returns what prepare_data returns."""
    sizes = {**splits, "calibration": pool}
    limits = {"train": None, "evaluation": None}
    if source.startswith("docstrings:") and None not in sizes.values():
        limits = {"train": (splits["train"] or 0) + pool, "evaluation": splits["evaluation"]}
    left_out = prepare_data(manifest, source=source, sizes=sizes, limits=limits, **keys)
    for split in SPLITS:
        target = split_of(manifest, split)
        target.parent.mkdir(parents=True, exist_ok=True)
        split_data(manifest, target, split=split, sizes=sizes)
    return left_out


def prepare_digits(manifest: Path, pool: int = 20, **sizes: int) -> Path:
    """So many of scikit-learn's digits in each split."""
    keys: dict[str, Any] = {"columns": {}, "pool": pool, "seed": 0, "task": IMAGE}
    splits = {"train": 20, "evaluation": 30, **sizes}
    prepare_splits(manifest, source="digits", splits=splits, **keys)
    return manifest
