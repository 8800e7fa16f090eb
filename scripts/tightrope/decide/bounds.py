"""What each variant costs, the candidates for a goal, and the bounds that they miss.

A bound is checked at the end of the measured interval that speaks against the variant: the low end
of the change of accuracy. The 99th percentile and the memory have no interval.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple, get_args

from tightrope.decide.finalists import in_mb, in_ms
from tightrope.decide.recommend import unkept
from tightrope.decide.result import (
    Entry,
    LatencyRow,
    Reason,
    Result,
    Shape,
    StudyEntry,
    interval_of,
    same,
)
from tightrope.statistics import SAMPLES_FOR_PERCENTILE

MILLION = 1e6
SECONDS_PER_HOUR = 3600.0
# key of `prices` for every host without a price of its own
ANY_HOST = "*"
# prices per hour by fingerprint of the host, in any currency
Prices = Mapping[str, float]
# by model and variant; None where one of the jobs left none
PrepareSeconds = Mapping[tuple[str, str], float | None]
Minimized = Literal["latency", "cost", "memory", "energy"]
Bound = Literal["p99_ms", "memory_mb", "accuracy_points"]
Scenario = Literal["single_stream", "offline", "server"]


class Goal(Entry):
    """The goal as configured, None where it was not given."""

    minimize: Minimized
    """What is to be the least."""
    shape: Shape | None = None
    traffic: Scenario | None = None
    """At which shape, or under which scenario of LoadGen."""
    p99_ms: float | None = None
    memory_mb: float | None = None
    accuracy_points: float | None = None
    """The bounds: at most so much."""


class Miss(Entry):
    """A bound that a variant misses."""

    bound: Bound
    limit: float
    """Which bound, and at most how much, in its unit."""
    value: float | None
    by: float | None
    """Its value, of accuracy the most points that it may have lost, and how much that is over; None
    if it is not known."""
    why: Reason | None
    """Why it is not known, else None."""


def price_of(host: str | None, prices: Prices) -> float | None:
    """Return the price of an hour of a host, None where none is configured."""
    return None if host is None else prices.get(host, prices.get(ANY_HOST))


def cost_of_million(inferences_per_s: float | None, price: float | None) -> float | None:
    """Return what a million inferences cost, without a price the hours of a machine.

    None without a rate.
    """
    if not inferences_per_s:
        return None
    hours = MILLION / inferences_per_s / SECONDS_PER_HOUR
    return hours if price is None else hours * price


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
    lacks: Reason | None
    provisional: bool
    row: LatencyRow | None = None

    @property
    def variant(self) -> str:
        """Return the name of the variant."""
        return self.result.variant


def unit_of(goal: Goal, price: float | None) -> str:
    """Return the unit of what the goal minimizes; without a price a cost is machine time."""
    if goal.minimize == "cost":
        return WITHOUT_PRICE if price is None else WITH_PRICE
    return UNITS[goal.minimize]


def at_shapes(
    goal: Goal, results: Iterable[Result], shapes: Iterable[Shape], price: float | None
) -> list[Candidate]:
    """Return each variant at each of the shapes at which it was measured."""
    wanted, found = list(shapes), []
    unknown = Reason.of("no_energy" if goal.minimize == "energy" else "unknown", of=goal.minimize)
    for result in results:
        for row in (one for one in result.latency if one.shape in wanted):
            values = {
                "latency": in_ms(row.paired_s),
                "cost": cost_of_million(row.throughput_per_s, price),
                "memory": in_mb(result.peak_rss_bytes),
                "energy": None if row.energy_j is None else row.energy_j / row.shape.batch,
            }
            value = None if row.paired_s is None else values[goal.minimize]
            lacks = Reason.of("disturbed", why=row.disturbed) if row.disturbed else unknown
            told = value, in_ms(row.p99_s), None if value is not None else lacks, row.provisional
            found.append(Candidate(result, row.shape, None, *told, row))
    return found


def why_no_p99(candidate: Candidate, limit_ms: float) -> Reason:
    """Return why the p99 of a candidate is not known, with the remedy where more calls are one.

    A p50 over the bound rules out the p99, however many calls there are.
    """
    row = candidate.row
    if row is None:
        return Reason.of("unmeasured_traffic")
    p50 = in_ms(row.p50_s)
    if p50 is not None and p50 > limit_ms:
        return Reason.of("p50_over", p50_ms=p50, limit_ms=limit_ms)
    calls = P99_CALLS if row.stop == "calls" else None
    return Reason.of(
        "few_calls", calls=row.samples, needed=SAMPLES_FOR_PERCENTILE[99], configure=calls
    )


def under_traffic(
    goal: Goal, results: Iterable[Result], traffic: Iterable[StudyEntry], price: float | None
) -> Iterator[Candidate]:
    """Yield each variant with each padding with which it was measured under the goal's traffic."""
    scenario, entries = goal.traffic, {entry.variant: entry for entry in traffic}
    for result in results:
        entry = entries.get(result.variant)
        for row in entry.rows if entry else ():
            rate = row["samples_per_s"] if scenario == "offline" else row["server_per_s"]
            values = {
                "latency": in_ms(row["single_stream_p90_s"]),
                "cost": cost_of_million(rate, price),
                "memory": in_mb(result.peak_rss_bytes),
            }
            value = values.get(goal.minimize)
            p99 = row["server_p99_s"] if scenario == "server" else row["single_stream_p99_s"]
            why = row["server_reason"] if scenario == "server" else row["reason"]
            lacks = Reason.of("no_traffic", scenario=scenario)
            if row["disturbed"]:
                lacks = Reason.of("disturbed", why=row["disturbed"])
            elif why:
                lacks = Reason.of("no_rate", why=why)
            told = value, in_ms(p99), lacks if value is None else None, row["provisional"]
            yield Candidate(result, None, row["padding"], *told)


def given(goal: Goal) -> list[tuple[Bound, float]]:
    """Return the bounds of the goal with their limits."""
    return [
        (bound, limit) for bound in get_args(Bound) if (limit := getattr(goal, bound)) is not None
    ]


def misses(candidate: Candidate, goal: Goal, budget_points: float) -> list[Miss]:
    """Return the bounds that a candidate misses; one that is not known is missed too.

    `budget_points` is the budget by which the summary judged accuracy.
    """
    found: list[Miss] = []
    for bound, limit in given(goal):
        value = {
            "p99_ms": candidate.p99_ms,
            "memory_mb": in_mb(candidate.result.peak_rss_bytes),
            "accuracy_points": points_lost(candidate.result, limit, budget_points),
        }[bound]
        if value is None or value > limit:
            by = None if value is None else value - limit
            unknown = Reason.of("not_measured")
            if bound == "p99_ms":
                unknown = why_no_p99(candidate, limit)
            found.append(Miss(bound, limit, value, by, unknown if value is None else None))
    return sorted(found, key=how_far, reverse=True)


def points_lost(result: Result, limit: float, budget_points: float) -> float | None:
    """Return the most points of accuracy that a variant may have lost, None if it is not known.

    That is the low end of the interval. Without labels it is 0: then accuracy rules nothing out. A
    variant in float with the baseline's logits up to rounding, which was `kept` although the
    interval is wider than the budget, has lost nothing.
    """
    accuracy = result.accuracy
    if accuracy is None or result.variant == result.baseline:
        return 0.0
    low = accuracy.delta_low
    if low is None:
        return None
    # 100 * 0.009 is a little more than a bound of 0.9
    lost = round(max(0.0, -100 * low), 9)
    equal = accuracy.verdict == "kept" and lost > budget_points
    return 0.0 if equal and lost > limit else lost


def how_far(miss: Miss) -> float:
    """Return by what fraction of its limit a bound is missed, infinite if it is not known."""
    if miss.by is None:
        return math.inf
    return miss.by / miss.limit if miss.limit else miss.by


def ruled_out(candidate: Candidate, goal: Goal) -> Reason | None:
    """Return why a candidate cannot be deployed whatever the bounds are, or None.

    The accuracy budget of the configuration holds unless the goal has a bound of its own.
    """
    result = candidate.result
    if result.status != "ok":
        return Reason.of(result.status, reason=result.reason)
    if goal.accuracy_points is None and (reason := unkept(result)):
        return reason
    return candidate.lacks


class Cost(Entry):
    """What a result costs at a shape; an inference is one input of a batch."""

    model: str
    variant: str
    host: str
    shape: Shape
    """Of which row."""
    inferences_per_s: float | None
    """Batch / `paired_s`."""
    price_per_hour: float | None
    """Of the host, in the currency of `prices`."""
    cost_per_million: float | None
    """Of inferences; None without a price."""
    prepare_s: float | None
    """Of calibrating, quantizing and measuring operators; 0 in float, None if a job was not
    timed."""
    build_s: float | None
    search_s: float | None
    """Of the result."""
    spent_s: float | None
    """Their sum."""
    saved_s: float | None
    """Per inference, over the baseline; negative if it is slower."""
    break_even_inferences: float | None
    """After so many it has saved `spent_s`; None if nothing is saved or `spent_s` is not known."""
    break_even_at_most: float | None
    """The same at the low end of the speed-up."""


def costs(results: Iterable[Result], prices: Prices, prepare_seconds: PrepareSeconds) -> list[Cost]:
    """Return an entry per measured result and shape; without a price it has no cost."""
    found: list[Cost] = []
    for result in (one for one in results if one.host is not None):
        price, build_s, spent = price_of(result.host, prices), result.build_s, None
        prepare_s = prepare_seconds.get((result.model, result.variant))
        search_s = result.search.seconds if result.search else None
        if build_s is not None and prepare_s is not None:
            spent = prepare_s + (search_s or 0.0) + build_s
        for row in result.latency:
            rate, (saved, surely_saved) = row.throughput_per_s, saved_per_inference(row)
            cost = Cost(
                **same(result, "model", "variant", "host", "build_s"),
                shape=row.shape,
                inferences_per_s=rate,
                price_per_hour=price,
                cost_per_million=cost_of_million(rate, price) if price else None,
                prepare_s=prepare_s,
                search_s=search_s,
                spent_s=spent,
                saved_s=saved,
                break_even_inferences=break_even(spent, saved),
                break_even_at_most=break_even(spent, surely_saved),
            )
            found.append(cost)
    return found


def saved_per_inference(row: LatencyRow) -> tuple[float | None, float | None]:
    """Return the seconds saved per inference over the baseline, and those at the low end.

    The baseline took `paired_s` times the speed-up. Both are None without a speed-up.
    """
    speedup, own = interval_of(row.speedup), row.paired_s
    if speedup is None or own is None:
        return None, None
    seconds = own / row.shape.batch
    # the baseline's time is known better than this variant's: vary the latter
    theirs = seconds * speedup.value
    return theirs - seconds, theirs - theirs / speedup.low


def break_even(spent_s: float | None, saved_s: float | None) -> float | None:
    """Return after how many inferences the time spent is saved, None where nothing is saved.

    A price per second of the machine is a factor of both times, so it cancels out.
    """
    if spent_s is None or saved_s is None or saved_s <= 0:
        return None
    return spent_s / saved_s
