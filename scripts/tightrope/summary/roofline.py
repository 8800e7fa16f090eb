"""A whole call in the roofline, and what limits the request that it is a part of."""

from collections.abc import Mapping
from typing import Any

from tightrope.summary.profile_types import Roofline
from tightrope.variants import GIVEN

# a file that is quantized already is in int8, or in fp8, which is as fast on GPUs that have it
PEAK_OF = {GIVEN: "int8"}


def roofline(
    work: Mapping[str, Any] | None, call_s: float, precision: str, peaks: Mapping[str, Any]
) -> Roofline | None:
    """Return the point of a call of `call_s` seconds, None where the model's work is not known.

    The roof is the peak of the variant's type, or the copy bandwidth times the operations per byte
    where that is lower. Both are None for a type whose peak was not measured.
    """
    if work is None:
        return None
    name = PEAK_OF.get(precision, precision.partition("-")[0])
    peak = peaks["operations_per_s"].get(name)
    by_memory = peaks["copy_bytes_per_s"] * work["operations"] / work["least_bytes"]
    return {
        "operations": work["operations"],
        "least_bytes": work["least_bytes"],
        "groups": work["groups"],
        "type": name,
        "operations_per_s": work["operations"] / call_s,
        "peak_per_s": peak,
        "roof_per_s": None if peak is None else min(peak, by_memory),
    }


def ceiling(call_s: float, around: Mapping[str, float | None]) -> float | None:
    """Return how many times faster a request gets if the call takes no time (Amdahl's law).

    None where the time to prepare the inputs is not known.
    """
    prepare_s, finish_s = around.get("prepare_s"), around.get("finish_s")
    if prepare_s is None or finish_s is None:
        return None
    rest = prepare_s + finish_s
    return (rest + call_s) / rest
