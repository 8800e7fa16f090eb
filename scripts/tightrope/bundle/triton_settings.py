"""Batches, waiting time, instances and threads of a server, each from a measurement."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from tightrope.errors import TightropeError
from tightrope.runtimes.tensorrt.profiles import Profile
from tightrope.signature import BATCH
from tightrope.summary.measured import Measured, StudyEntry
from tightrope.summary.result_types import LatencyRow, Result

# share of a lone request's latency that it may wait for others
WAITING = 0.1
Entry = TypeVar("Entry", bound=Measured)


class Point(NamedTuple):
    """Calls of one batch; `call_s` is the median, p99 is None where it is not known."""

    batch: int
    samples_per_s: float
    call_s: float
    p99_s: float | None
    provisional: bool


class Curve(NamedTuple):
    """Points at the same shape, instances and threads; `source` says in words where from.

    `division` says where the number of instances is from. `bound_s` is the bound on p99, if any.
    """

    points: list[Point]
    chosen: Point
    instances: int
    threads: int
    bound_s: float | None
    source: str
    division: str


class Settings(NamedTuple):
    """Settings of a server; `origins` has a sentence for each of them, by its name.

    `largest` and `preferred` are batches, `delay_us` is the longest time in microseconds that a
    request waits for others, `threads` are those of each of the `instances`.
    """

    largest: int
    preferred: int
    delay_us: int
    instances: int
    threads: int
    origins: dict[str, str]


def settings_of(
    options: dict[str, Any],
    result: Result,
    throughput: Sequence[StudyEntry],
    traffic: Sequence[StudyEntry],
) -> Settings:
    """Return the settings for an engine with these `options` (their buckets or profiles limit it).

    Entries of other variants are ignored. Raises TightropeError where no batch has a number.
    """
    limit = math.inf  # of the batch
    if options.get("profiles"):
        limit = max(Profile.of(one).max[0] for one in options["profiles"])
    elif options.get("buckets"):
        limit = max(options["buckets"][BATCH])
    entry, load = own(throughput, result), own(traffic, result)
    curve = (entry and curve_of_throughput(entry, limit)) or curve_of_latency(result, limit)
    batches = {one.batch for one in curve.points} | {one["batch"] for one in rows_of(result, limit)}
    batches |= {
        one["batch"]
        for one in (load["rows"] if load else ())
        if one["samples_per_s"] and one["batch"] <= limit
    }
    delay_us, why = delay_of(curve)
    chosen = curve.chosen
    compared = ", ".join(str(one) for one in sorted(point.batch for point in curve.points))
    provisional = "; provisional, other load disturbed it" if chosen.provisional else ""
    held = "" if limit == math.inf else f" of those that the engine was built for (up to {limit})"
    origins = {
        "largest": f"the largest measured batch{held}",
        "preferred": (
            f"{chosen.samples_per_s:.4g} samples per second, the most of the batches {compared} "
            f"({curve.source}{provisional})"
        ),
        "delay_us": why,
        "instances": curve.division,
        "threads": f"those of each instance in {curve.source}",
    }
    return Settings(
        max(batches), chosen.batch, delay_us, curve.instances, curve.threads, origins=origins
    )


def own(entries: Iterable[Entry], result: Result) -> Entry | None:
    """Return the entry of the variant of `result` on the same host, None without one."""
    names = ("model", "variant", "host")
    wanted = [result["model"], result["variant"], result["host"]]
    found = (one for one in entries if [one[name] for name in names] == wanted)  # type: ignore[literal-required]  # the names are literals
    return next((one for one in found if one["status"] == "ok"), None)


def curve_of_throughput(entry: StudyEntry, limit: float) -> Curve | None:
    """Return the points with the division of the best one, the best within the bound if any."""
    within = [row for row in entry["rows"] if row["best_within_bound"]]
    best = next(iter(within or [row for row in entry["rows"] if row["best"]]), None)
    if best is None or best["batch"] > limit:
        return None
    instances, threads = best["instances"], best["threads"]
    points = [
        Point(
            one["batch"],
            rate["value"],
            one["p50_s"] or instances * one["batch"] / rate["value"],
            one["p99_s"],
            one["provisional"],
        )
        for one in entry["rows"]
        if (one["instances"], one["threads"]) == (instances, threads)
        and (rate := one["samples_per_s"])
        and one["batch"] <= limit
    ]
    chosen = next(one for one in points if one.batch == best["batch"])
    shape = size(*(entry["shape"].get(axis) for axis in ("sequence", "height", "width")))
    why = "of those within the bound on p99" if within else "of all"
    source = f"`studies.throughput` of summary.json at {shape}"
    division = f"the division with the most samples per second, {why}, in {source}"
    return Curve(points, chosen, instances, threads, best["bound_s"], source, division)


def curve_of_latency(result: Result, limit: float) -> Curve:
    """Return the points of the shape with most batches, of several such that with most tokens."""
    groups: dict[tuple[int | None, int | None, int | None], list[LatencyRow]] = {}
    for row in rows_of(result, limit):
        shape = (row.get("sequence"), row.get("height"), row.get("width"))
        groups.setdefault(shape, []).append(row)
    shape = max(groups, key=lambda one: (len(groups[one]), one[0] or 0))
    best = max(groups[shape], key=lambda row: row["throughput_per_s"] or 0.0)
    points = [point_of(row) for row in groups[shape]]
    streams = best.get("streams")
    count = (streams and streams["best"]) or 1
    source = f"`latency` of summary.json at {size(*shape)}, one call at a time"
    by_streams = f"the fastest of the measured `streams` at batch {best['batch']}"
    why = by_streams if count > 1 else f"one, as in {source}: no better number was measured"
    return Curve(points, point_of(best), count, result["threads"] or 1, None, source, why)


def rows_of(result: Result, limit: float) -> list[LatencyRow]:
    """Return the rows that have times and no padding; raise TightropeError without one."""
    rows = [
        row
        for row in result["latency"]
        if row.get("throughput_per_s") and not row.get("tokens") and row["batch"] <= limit
    ]
    if not rows:
        raise TightropeError(
            f"{result['model']} {result['variant']}: no undisturbed latency from which a server "
            "could be set up; measure it again on a quiet machine"
        )
    return rows


def point_of(row: LatencyRow) -> Point:
    """Return a row of `latency` as a point."""
    rate = row["throughput_per_s"] or 0.0
    call_s = row.get("paired_s") or row["batch"] / rate
    return Point(row["batch"], rate, call_s, row.get("p99_s"), row.get("provisional", False))


def size(sequence: int | None, height: int | None, width: int | None) -> str:
    """Return the shape of a sample in words."""
    return f"{height} x {width} pixels" if sequence is None else f"{sequence} tokens"


def delay_of(curve: Curve) -> tuple[int, str]:
    """Return the longest time that a request waits for others, in microseconds, and why.

    A tenth of the call of the smallest measured batch, per sample, so that waiting costs a request
    that comes alone at most 10 % of its latency; requests that come while all instances are at work
    wait for these anyway. No more than a bound on p99 leaves, and none where 1 is the best batch.
    """
    if curve.chosen.batch == 1:
        return 0, "no larger batch answered more samples per second, so no request waits"
    alone = min(curve.points)
    each = "" if alone.batch == 1 else f", divided by {alone.batch}"
    rule = (
        f"a tenth of the {1000 * alone.call_s:.4g} ms that a call at batch {alone.batch} took{each}"
        ": waiting costs a request that comes alone at most 10 % of its latency"
    )
    delay_s = WAITING * alone.call_s / alone.batch
    if curve.bound_s is not None:
        left_s = max(0.0, curve.bound_s - (curve.chosen.p99_s or curve.bound_s))
        if left_s < delay_s:
            return int(1e6 * left_s), "what p99 at the preferred batch leaves of its bound"
    return int(1e6 * delay_s), rule
