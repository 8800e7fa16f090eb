"""What a model takes at least in the precision of a variant."""

from collections.abc import Mapping
from typing import Any

from tightrope.runtimes.operator_times import WIDTHS

# bytes of a weight in precisions that are no name of a type; `given` is int8 or fp8
OTHER_WIDTHS = {"tf32": 4, "given": 1}


def work_in(precision: str, work: Mapping[str, Any]) -> dict[str, Any]:
    """Return `operations`, `least_bytes` and `groups` of a call, see `model_works`.

    The bytes are those of the inputs, of the logits, and of each weight once in the type of
    `precision`.
    """
    moved = work["weights"] * width(precision) + work["other_bytes"]
    return {"operations": work["operations"], "least_bytes": moved, "groups": work["groups"]}


def width(precision: str) -> int:
    """Return the bytes of each floating-point weight in a variant of that precision."""
    name = precision.partition("-")[0]
    return OTHER_WIDTHS.get(name) or WIDTHS[name]
