"""Profile entries of summary.json."""

from collections.abc import Mapping
from typing import Any

from tightrope.machine.lacks import missing_instructions
from tightrope.records.profile import ProfileRecord
from tightrope.summary.measured import measured_entry
from tightrope.summary.profile_types import LongOperator, OperatorGroup, Profile, ProfiledCall
from tightrope.summary.roofline import ceiling, roofline
from tightrope.variants import parse

LONGEST = 5


def profile_entry(record: ProfileRecord) -> Profile:
    """Return the entry of a profile record."""
    return {
        **measured_entry(record),
        "unprofiled": record.unprofiled,
        "emulated": missing_instructions(parse(record.variant), record.host),
        "shapes": [call_entry(shape, record) for shape in record.shapes],
    }


def call_entry(shape: Mapping[str, Any], record: ProfileRecord) -> ProfiledCall:
    """Return the entry of a shape, with times scaled to the call by `profiler_factor`."""
    call_s, factor = shape["call_s"], shape.get("profiler_factor")
    outside, around = shape.get("outside_s"), shape.get("around", {})
    precision = parse(record.variant).precision
    scale = factor or 1.0
    return {
        "batch": shape["batch"],
        "sequence": shape.get("sequence"),
        "height": shape.get("height"),
        "width": shape.get("width"),
        "call_s": call_s,
        "bound": shape.get("bound"),
        "shares": shape.get("shares"),
        "outside": None if outside is None else outside / call_s,
        "profiler_factor": factor,
        "padding": shape.get("padding"),
        "prepare_s": around.get("prepare_s"),
        "finish_s": around.get("finish_s"),
        "ceiling": ceiling(call_s, around),
        "roofline": roofline(shape.get("model"), call_s, precision, record.peaks),
        "groups": [
            group_entry(name, group, scale, call_s)
            for name, group in shape.get("groups", {}).items()
        ],
        "operators": [
            operator_entry(one, scale, call_s) for one in shape.get("operators", [])[:LONGEST]
        ],
    }


def group_entry(name: str, group: Mapping[str, Any], scale: float, call_s: float) -> OperatorGroup:
    """Return the entry of a group of operators."""
    seconds = scale * group["seconds"]
    return {
        "group": name,
        "seconds": seconds,
        "share": seconds / call_s,
        "types": {name: scale * value / call_s for name, value in group["types"].items()},
        "operations": group["operations"],
        "bytes": group["bytes"],
        "count": group["count"],
    }


def operator_entry(operator: Mapping[str, Any], scale: float, call_s: float) -> LongOperator:
    """Return the entry of an operator."""
    seconds = scale * operator["seconds"]
    return {
        "name": operator["name"],
        "kind": operator["kind"],
        "group": operator["group"],
        "type": operator["type"],
        "seconds": seconds,
        "share": seconds / call_s,
    }
