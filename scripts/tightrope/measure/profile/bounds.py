"""What holds a call back: compute, memory or overhead, by the roofline of each operator.

An operator cannot be faster than its operations at the machine's peak in its type, nor than its
bytes at the machine's copy bandwidth (S. Williams et al., Roofline, CACM 52(4), 2009). Its time is
compute's or memory's, whichever bound is longer. Where neither explains a tenth of the time, it is
overhead, as is all of the call that no operator takes: dispatch, copies, Python. Operators in a
compiled package tell no sizes: its fused loops over elements are memory's, attention that it calls
is compute's, unless they are as short as a few of the smallest operators.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tightrope.runtimes.operator_times import ATTENTION, FUSED, PRODUCTS, OperatorTime

COMPUTE, MEMORY, OVERHEAD = "compute", "memory", "overhead"
# share of an operator's time that a bound has to explain
EXPLAINED = 0.1
# what bounds an operator of unknown sizes
UNSIZED = {FUSED: MEMORY, ATTENTION: COMPUTE, PRODUCTS: COMPUTE}
# smallest operators as long as which an operator of unknown sizes may be and still be overhead
FEW = 5


def verdict(
    operators: Sequence[OperatorTime], call_s: float, peaks: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what bounds a call of `call_s` seconds, and the share of each of the three.

    `peaks` are those of `measure.profile.peaks`. A profiler adds to the time of
    each operator: where they add up to more than the call, they are scaled down to it, by
    `profiler_factor`. `outside_s` is what no operator takes.
    """
    total = sum(one.seconds for one in operators)
    factor = min(1.0, call_s / total) if total else 1.0
    seconds = {COMPUTE: 0.0, MEMORY: 0.0, OVERHEAD: 0.0}
    for one in operators:
        seconds[bound_of(one, factor * one.seconds, peaks)] += factor * one.seconds
    outside = max(0.0, call_s - total)
    seconds[OVERHEAD] += outside
    shares = {name: value / call_s for name, value in seconds.items()}
    return {
        "bound": max(shares, key=shares.__getitem__),
        "shares": shares,
        "outside_s": outside,
        "profiler_factor": factor,
    }


def bound_of(operator: OperatorTime, seconds: float, peaks: Mapping[str, Any]) -> str:
    """Return what bounds an operator that takes `seconds`."""
    if operator.group in UNSIZED and not operator.operations:
        long = seconds > FEW * peaks["smallest_operator_s"]
        return UNSIZED[operator.group] if long else OVERHEAD
    compute, memory = bounds(operator, peaks)
    if max(compute, memory) < EXPLAINED * seconds:
        return OVERHEAD
    return COMPUTE if compute >= memory else MEMORY


def bounds(operator: OperatorTime, peaks: Mapping[str, Any]) -> tuple[float, float]:
    """Return the seconds that an operator takes at least, by its operations and by its bytes."""
    by_type = peaks["operations_per_s"]
    peak = by_type.get(operator.type) or by_type["fp32"]
    return operator.operations / peak, operator.bytes / peaks["copy_bytes_per_s"]
