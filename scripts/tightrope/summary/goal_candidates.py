"""Candidates for a goal, and the bounds that they miss.

A bound is checked at the end of the measured interval that speaks against the variant: the low end
of the change of accuracy. The 99th percentile and the memory have no interval.
"""

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tightrope.statistics import SAMPLES_FOR_PERCENTILE
from tightrope.summary.cost import hours_per_million, inferences_per_s
from tightrope.summary.decision_types import Bound, Goal, Miss, Scenario
from tightrope.summary.recommend import unkept
from tightrope.summary.result_types import LatencyRow, Result, Shape
from tightrope.summary.results import shape_of
from tightrope.summary.traffic import Traffic, TrafficRow

MEGABYTE = 1e6
MILLISECONDS = 1000.0
# to configure for a p99, of which some may be disturbed
P99_CALLS = 800
UNITS = {"latency": "ms", "memory": "MB", "energy": "J per inference"}
WITH_PRICE, WITHOUT_PRICE = "per million inferences", "machine hours per million inferences"
BOUNDS: tuple[Bound, ...] = ("p99_ms", "memory_mb", "accuracy_points")


class Candidate(NamedTuple):
    """A variant at a shape, or with a padding under traffic.

    `value` is what the goal minimizes, in `unit_of`, None with the reason `lacks`; `p99_ms` may be
    None. `provisional` numbers are those of disturbed measurements. `row` is that of the shape,
    None under traffic.
    """

    result: Result
    shape: Shape | None
    padding: str | None
    value: float | None
    p99_ms: float | None
    lacks: str | None
    provisional: bool
    row: LatencyRow | None = None

    @property
    def variant(self) -> str:
        """Return the name of the variant."""
        return self.result["variant"]


def unit_of(goal: Goal, price: float | None) -> str:
    """Return the unit of what the goal minimizes; without a price a cost is machine time."""
    if goal["minimize"] == "cost":
        return WITHOUT_PRICE if price is None else WITH_PRICE
    return UNITS[goal["minimize"]]


def at_shapes(
    goal: Goal, results: Iterable[Result], shapes: Iterable[Shape], price: float | None
) -> list[Candidate]:
    """Return each variant at each of the shapes at which it was measured."""
    wanted = list(shapes)
    found = []
    for result in results:
        for row in result["latency"]:
            if (shape := shape_of(row)) in wanted:
                value, p99 = value_at(goal, result, row, price), in_ms(row["p99_s"])
                lacks = None if value is not None else why_no_value(goal, row)
                told = row["provisional"]
                found.append(Candidate(result, shape, None, value, p99, lacks, told, row))
    return found


def value_at(goal: Goal, result: Result, row: LatencyRow, price: float | None) -> float | None:
    """Return what the goal minimizes at the shape of a row, None if it is not known."""
    if row["paired_s"] is None:
        return None
    match goal["minimize"]:
        case "latency":
            return in_ms(row["paired_s"])
        case "cost":
            rate = inferences_per_s(row)
            return priced(rate, price)
        case "memory":
            return memory_mb(result)
        case "energy":
            return None if row["energy_j"] is None else row["energy_j"] / row["batch"]


def why_no_value(goal: Goal, row: LatencyRow) -> str:
    """Return why a row lacks what the goal minimizes."""
    if row["disturbed"]:
        return f"disturbed: {row['disturbed']}"
    if goal["minimize"] == "energy":
        return "the machine shows no energy of it"
    return f"its {goal['minimize']} was not measured"


def why_no_p99(candidate: Candidate, limit_ms: float) -> str:
    """Return why the p99 of a candidate is not known, with the remedy where more calls are one.

    A p50 over the bound rules out the p99, however many calls there are.
    """
    row = candidate.row
    if row is None:
        return "not measured under this traffic"
    p50 = in_ms(row["p50_s"])
    if p50 is not None and p50 > limit_ms:
        return f"p50 is {p50:.3g} ms already, over the bound of {limit_ms:.3g} ms"
    remedy = f"; set latency: {{calls: {P99_CALLS}}}" if row["stop"] == "calls" else ""
    return f"{row['samples']} of {SAMPLES_FOR_PERCENTILE[99]} calls{remedy}"


def priced(rate: float | None, price: float | None) -> float | None:
    """Return the cost of a million inferences at so many per second, or its machine hours."""
    return hours_per_million(rate) * (1.0 if price is None else price) if rate else None


def memory_mb(result: Result) -> float | None:
    """Return the peak resident memory of the process in MB (10^6 bytes), None if not known."""
    return None if result["peak_rss_bytes"] is None else result["peak_rss_bytes"] / MEGABYTE


def in_ms(seconds: float | None) -> float | None:
    """Return seconds in milliseconds."""
    return None if seconds is None else MILLISECONDS * seconds


def under_traffic(
    goal: Goal,
    scenario: Scenario,
    results: Iterable[Result],
    traffic: Iterable[Traffic],
    price: float | None,
) -> Iterator[Candidate]:
    """Yield each variant with each padding with which it was measured under the traffic."""
    entries = {entry["variant"]: entry for entry in traffic}
    for result in results:
        entry = entries.get(result["variant"])
        for row in entry["rows"] if entry else ():
            value = value_under(goal, scenario, result, row, price)
            p99 = row["server_p99_s"] if scenario == "server" else row["single_stream_p99_s"]
            lacks = f"disturbed: {row['disturbed']}" if row["disturbed"] else row["server_reason"]
            words = None if value is not None else lacks or f"not measured with {scenario}"
            yield Candidate(
                result, None, row["padding"], value, in_ms(p99), words, row["provisional"]
            )


def value_under(
    goal: Goal, scenario: Scenario, result: Result, row: TrafficRow, price: float | None
) -> float | None:
    """Return what the goal minimizes under traffic, None if it is not known."""
    match goal["minimize"]:
        case "latency":
            return in_ms(row["single_stream_p90_s"])
        case "cost":
            rate = row["samples_per_s"] if scenario == "offline" else row["server_per_s"]
            return priced(rate, price)
        case "memory":
            return memory_mb(result)
        case "energy":
            return None


def given(goal: Goal) -> list[tuple[Bound, float]]:
    """Return the bounds of the goal with their limits."""
    return [(bound, limit) for bound in BOUNDS if (limit := goal[bound]) is not None]


def misses(candidate: Candidate, goal: Goal, budget_points: float) -> list[Miss]:
    """Return the bounds that a candidate misses; one that is not known is missed too.

    `budget_points` is the budget by which the summary judged accuracy.
    """
    found: list[Miss] = []
    for bound, limit in given(goal):
        value = value_of(bound, candidate, limit, budget_points)
        if value is None or value > limit:
            by = None if value is None else value - limit
            unknown = why_no_p99(candidate, limit) if bound == "p99_ms" else "not measured"
            why = unknown if value is None else None
            found.append({"bound": bound, "limit": limit, "value": value, "by": by, "why": why})
    return sorted(found, key=how_far, reverse=True)


def value_of(
    bound: Bound, candidate: Candidate, limit: float, budget_points: float
) -> float | None:
    """Return the value that a bound limits, in the unit of the bound, None if it is not known."""
    if bound == "p99_ms":
        return candidate.p99_ms
    if bound == "memory_mb":
        return memory_mb(candidate.result)
    return points_lost(candidate.result, limit, budget_points)


def points_lost(result: Result, limit: float, budget_points: float) -> float | None:
    """Return the most points of accuracy that a variant may have lost, None if it is not known.

    That is the low end of the interval. Without labels it is 0: then accuracy rules nothing out. A
    variant in float with the baseline's logits up to rounding, which was `kept` although the
    interval is wider than the budget, has lost nothing.
    """
    accuracy = result["accuracy"]
    if accuracy is None or result["variant"] == result["baseline"]:
        return 0.0
    low = accuracy["delta_low"]
    if low is None:
        return None
    # 100 * 0.009 is a little more than a bound of 0.9
    lost = round(max(0.0, -100 * low), 9)
    equal = accuracy["verdict"] == "kept" and lost > budget_points
    return 0.0 if equal and lost > limit else lost


def how_far(miss: Miss) -> float:
    """Return by what fraction of its limit a bound is missed, infinite if it is not known."""
    if miss["by"] is None:
        return math.inf
    return miss["by"] / miss["limit"] if miss["limit"] else miss["by"]


def ruled_out(candidate: Candidate, goal: Goal) -> str | None:
    """Return why a candidate cannot be deployed whatever the bounds are, or None.

    The accuracy budget of the configuration holds unless the goal has a bound of its own.
    """
    result = candidate.result
    if result["status"] != "ok":
        return f"{result['status']}: {result['reason']}"
    if goal["accuracy_points"] is None and (reason := unkept(result)):
        return reason
    return candidate.lacks
