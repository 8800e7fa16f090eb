"""Candidates for a goal: what the goal minimizes, and its 99th percentile, where measured."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tightrope.statistics import SAMPLES_FOR_PERCENTILE
from tightrope.summary.cost import hours_per_million, inferences_per_s
from tightrope.summary.goal_types import Goal, Scenario
from tightrope.summary.result_types import LatencyRow, Result, Shape
from tightrope.summary.results import shape_of
from tightrope.summary.workload_types import Traffic, TrafficRow

MEGABYTE = 1e6
MILLISECONDS = 1000.0
# to configure for a p99, of which some may be disturbed
P99_CALLS = 800
UNITS = {"latency": "ms", "memory": "MB", "energy": "J per inference"}
WITH_PRICE, WITHOUT_PRICE = "per million inferences", "machine hours per million inferences"


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
    key = "calls" if row["stop"] == "calls" else "min_calls"
    needed = SAMPLES_FOR_PERCENTILE[99]
    return f"{row['samples']} of {needed} calls; set latency: {{{key}: {P99_CALLS}}}"


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
