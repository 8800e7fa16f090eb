"""Throughput of a variant on this machine: several instances at a time, by threads and batch."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Literal

import msgspec

from tightrope.config.types import Counts, Positive
from tightrope.errors import WorkFailed
from tightrope.jobs.child import Child
from tightrope.jobs.progress import ProgressBar
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.records.record import kept
from tightrope.statistics import (
    SAMPLES_FOR_PERCENTILE,
    Interval,
    percentile,
    trimmed_mean,
    unpaired_speedup,
)
from tightrope.studies import study
from tightrope.studies.instances import (
    Division,
    divisions,
    loop_all,
    shares,
    warm_up,
    window_seconds,
)
from tightrope.studies.study import Bench, Column, Estimate, Heat, Shape, Study, StudyRecord

# fewest blocks in which a call of each instance ended, for a number
FEWEST_BLOCKS = 4
TOO_SLOW = "the calls were too slow: fewer than four blocks had one of each instance"
AutoOr = Literal["auto"] | Counts


class Settings(study.Settings, frozen=True):
    """Which instances, threads and batches are tried, and for how long."""

    batches: Counts = (1, 4, 16)
    """Of each call; an engine with static shapes takes them up to its largest bucket."""
    sequence: Annotated[int, msgspec.Meta(ge=2)] = 128
    """Tokens of texts, none of them padding."""
    instances: AutoOr = "auto"
    """So many processes of the engine at a time, each on cores of its own; auto is every divisor of
    the number of cores (`threads` at the top). One with all cores is always among them."""
    threads: AutoOr = "auto"
    """Of each instance; auto divides the cores among the instances."""
    p99_ms: Positive | None = None
    """Bound of the 99th percentile of the time of a call, for the best point within it; null is
    none. With it a point has the calls that p99 needs."""
    seconds: Positive = 2.0
    """Of a point, warm-up aside; longer where calls are too slow for ten blocks of two."""
    max_seconds: Positive = 300
    """Of all points of a variant, loads included; what is left then is skipped."""


class Point(msgspec.Struct, kw_only=True):
    """Calls in a closed loop of all instances of a division, at one batch.

    `reason` says why there are none: the point was `skipped`, or else it failed. `seconds` is the
    window in which all instances ran; `blocks_s` has, for each instance and block of the window,
    the seconds of the calls that ended in it, to 0.1 microseconds. For each instance `waited_s` are
    the seconds in which its threads had no processor (None where the kernel does not report it),
    `late_s` by how much it began after the window. `peak_rss_bytes` is the memory of all instances,
    pages that they share counted for each.
    """

    instances: int
    threads: int
    batch: int
    skipped: bool = False
    reason: str | None = None
    seconds: float | None = None
    blocks_s: list[list[list[float]]] = []
    waited_s: list[float | None] = []
    late_s: list[float] = []
    foreign_cores: float = 0.0
    peak_rss_bytes: int | None = None

    @property
    def division(self) -> Division:
        """Return instances and threads."""
        return Division(self.instances, self.threads)

    @property
    def calls_s(self) -> list[float]:
        """Return the seconds of all calls of all instances."""
        return [call for instance in self.blocks_s for block in instance for call in block]

    @property
    def block_rates(self) -> list[float]:
        """Return the samples per second of each block in which a call of each instance ended.

        The sum over the instances; the clock of each runs from the end of a call to that of a later
        one.
        """
        return [
            sum(self.batch * len(calls) / sum(calls) for calls in block)
            for block in zip(*self.blocks_s, strict=True)
            if all(block)
        ]

    @property
    def rate(self) -> Interval | None:
        """Return the samples per second with its interval, None with too few blocks."""
        rates = self.block_rates
        return trimmed_mean(rates) if len(rates) >= FEWEST_BLOCKS else None

    def percentile(self, percent: int) -> float | None:
        """Return a percentile of the seconds per call, None with too few calls to support it."""
        return percentile(self.calls_s, percent)


class Row(study.Row, kw_only=True):
    """A point: so many instances with so many threads each, at one batch."""

    division: Annotated[str, Column("Instances", "text")]
    instances: int
    threads: int
    """How many instances, the threads of each, and both in words."""
    batch: Annotated[int, Column("Batch", "count")]
    """Examples of a call."""
    samples_per_s: Annotated[Estimate | None, Column("Samples/s", "rate")] = None
    """Of all instances."""
    p50_s: Annotated[float | None, Column("p50, ms", "ms")] = None
    p99_s: Annotated[float | None, Column("p99, ms", "ms")] = None
    """Of their calls; None with too few."""
    skipped: bool = False
    """Whether it was not tried; else, without numbers, it failed."""
    best: bool = False
    """The point with the most samples per second."""
    single: bool = False
    """The best point of one instance with all threads."""
    best_within_bound: bool = False
    """The best point of those whose p99 is known and within `bound_s`."""
    bound_s: float | None = None
    """How long the p99 may be."""
    gain: Estimate | None = None
    """The samples per second of `best` over those of `single`; None where they are the same point
    or one is missing."""
    foreign_cores: float | None = None
    """Cores that other programs used."""
    peak_rss_bytes: int | None = None
    """The sum over the instances, shared pages counted in each."""


def measure(bench: Bench, settings: Settings) -> Iterator[Point]:
    """Yield all points, or why one was not measured.

    A division of the cores that fails leaves the others; raises WorkFailed where all points that
    were tried did.
    """
    size = bench.size(settings.sequence, "throughput.sequence")
    bench.shape = size
    shapes = [{"batch": batch, **size} for batch in settings.batches]
    cores = bench.processors[: bench.threads]
    found = divisions(settings.instances, settings.threads, cores=len(cores))
    points: list[Point] = []
    failures: list[WorkFailed] = []
    with ProgressBar("throughput", len(found) * len(shapes)) as bar:
        for division in found:
            for point in of_division(bench, settings, division, shapes, points, failures):
                points.append(point)
                yield point
            bar.add(len(shapes))
    if failures and all(point.reason is not None for point in points):
        raise failures[0]


def of_division(
    bench: Bench,
    settings: Settings,
    division: Division,
    shapes: Sequence[Shape],
    points: Sequence[Point],
    failures: list[WorkFailed],
) -> Iterator[Point]:
    """Yield the points of a division, whose instances are loaded once for all batches.

    `points` are those before, of this division too; an error is added to `failures`.
    """
    skipped = [why_skipped(bench, settings, division, batch, points) for batch in settings.batches]
    if all(skipped):
        for batch, reason in zip(settings.batches, skipped, strict=True):
            yield Point(**division._asdict(), batch=batch, skipped=True, reason=reason)
        return
    done = 0
    try:
        with bench.engines(shapes, shares(division, bench.processors)) as workers:
            for index, batch in enumerate(settings.batches):
                if reason := why_skipped(bench, settings, division, batch, points):
                    yield Point(**division._asdict(), batch=batch, skipped=True, reason=reason)
                else:
                    yield measured(bench, settings, workers, index, division)
                done += 1
    except WorkFailed as error:
        failures.append(error)
        for batch in settings.batches[done:]:
            yield Point(**division._asdict(), batch=batch, reason=error.reason)


def measured(
    bench: Bench, settings: Settings, workers: list[Child], index: int, division: Division
) -> Point:
    """Return a point; one that other load disturbed is repeated while time may be lost.

    Raises WorkFailed where an instance fails.
    """
    bench.machine.wait()
    pace_s = warm_up(workers, index)
    seconds = window_seconds(
        pace_s,
        division.instances,
        seconds=settings.seconds,
        calls=0 if settings.p99_ms is None else SAMPLES_FOR_PERCENTILE[99],
    )
    used = bench.processors[: division.instances * division.threads]
    batch = settings.batches[index]

    def once() -> Point:
        facts = loop_all(workers, index, used, seconds)
        return Point(**division._asdict(), batch=batch, **facts)

    *_, point = bench.quietly(once)
    return point


def why_skipped(
    bench: Bench, settings: Settings, division: Division, batch: int, points: Sequence[Point]
) -> str | None:
    """Return why a point is not measured after those before, None where it is.

    The first always is.
    """
    cores = len(bench.processors[: bench.threads])
    needed = division.instances * division.threads
    if needed > cores:
        return f"needs {needed} cores, there are {cores}"
    quiet = [one for one in points if one.foreign_cores <= MAX_FOREIGN_CORES and one.rate]
    out_of_time = points and bench.spent_s > settings.max_seconds
    return (
        broken_before(division.instances, batch, points)
        or over_the_bound(division, batch, quiet, settings.p99_ms)
        or already_slower(division.instances, batch, quiet)
        or (f"max_seconds = {settings.max_seconds:g} were over" if out_of_time else None)
    )


def broken_before(instances: int, batch: int, points: Iterable[Point]) -> str | None:
    """Return why more instances are not tried: fewer of them failed at this batch."""
    for one in points:
        failed = one.reason and not one.skipped
        if failed and one.batch == batch and one.instances < instances:
            return f"failed with {one.instances} instances: {one.reason}"
    return None


def over_the_bound(
    division: Division, batch: int, points: Iterable[Point], bound_ms: float | None
) -> str | None:
    """Return why a larger batch is too slow: p99 is over the bound at a smaller one already.

    The median alone shows it where the calls were too few for p99.
    """
    for one in points if bound_ms is not None else ():
        if one.division != division or one.batch >= batch:
            continue
        for percent in (99, 50):
            seconds = one.percentile(percent)
            if bound_ms is not None and seconds is not None and 1000 * seconds > bound_ms:
                return (
                    f"p{percent} is {1000 * seconds:.3g} ms at batch {one.batch} already, over the "
                    f"bound of {bound_ms:g} ms"
                )
    return None


def already_slower(instances: int, batch: int, points: Iterable[Point]) -> str | None:
    """Return why more instances cannot win: the last increase made this batch surely slower.

    Of each number of instances its best threads count. Surely: the intervals do not overlap.
    """
    best: dict[int, Interval] = {}
    for one in points:
        rate = one.rate
        if rate and one.batch == batch and one.instances < instances:
            best[one.instances] = max(best.get(one.instances, rate), rate)
    if len(best) < 2:
        return None
    last = max(best)
    rate = best.pop(last)
    other = max(best, key=lambda count: best[count].value)
    if rate.high >= best[other].low:
        return None
    return (
        f"slower already: {last} instances {rate.value:.4g} samples/s, {other} "
        f"{best[other].value:.4g}"
    )


def rows(record: StudyRecord, accept: bool) -> list[Row]:
    """Return a row per point, as they were measured.

    `best` and `single` are of the points with numbers.
    """
    cores = len(record.processors[: record.threads])
    bound_ms = record.settings["p99_ms"]
    bound_s = None if bound_ms is None else bound_ms / 1000
    pairs = [(row(point, record, accept, bound_s), point) for point in record.calls]
    best = fastest(pairs, lambda one: True)
    single = fastest(pairs, lambda one: (one.instances, one.threads) == (1, cores))
    within = fastest(pairs, lambda one: bool(bound_s and one.p99_s and one.p99_s <= bound_s))
    if within:
        within[0].best_within_bound = True
    if best and single:
        best[0].best = single[0].single = True
        if best[0] is not single[0]:
            own, other = ([1 / rate for rate in one[1].block_rates] for one in (best, single))
            best[0].gain = Estimate.of(unpaired_speedup(own, other))
    elif best:
        best[0].best = True
    return [one for one, _ in pairs]


def row(point: Point, record: StudyRecord, accept: bool, bound_s: float | None) -> Row:
    """Return the row of a point; best and gain are not yet known."""
    counted = kept([point], 1, "it", record.busiest, accept=accept)
    found = Row(
        division=in_words(point.division),
        instances=point.instances,
        threads=point.threads,
        batch=point.batch,
        skipped=point.skipped,
        reason=point.reason,
        bound_s=bound_s,
        foreign_cores=point.foreign_cores if point.blocks_s else None,
        peak_rss_bytes=point.peak_rss_bytes,
        disturbed=counted.disturbed,
    )
    rate = point.rate
    if point.reason is not None or not counted.calls:
        return found
    if rate is None:
        found.reason = None if found.disturbed else TOO_SLOW
        return found
    found.samples_per_s = Estimate(rate.value, max(0.0, rate.low), rate.high)
    found.calls, found.provisional = len(point.calls_s), counted.provisional
    found.p50_s, found.p99_s = point.percentile(50), point.percentile(99)
    return found


def fastest(
    pairs: Iterable[tuple[Row, Point]], among: Callable[[Row], bool]
) -> tuple[Row, Point] | None:
    """Return the row with the most samples per second `among` some, and its point."""
    known = [one for one in pairs if one[0].samples_per_s and among(one[0])]
    return max(known, key=lambda one: one[0].samples_per_s.value, default=None)  # type: ignore[union-attr]


def in_words(division: Division) -> str:
    """Name instances and threads: "2 instances, 4 threads each"."""
    instances, threads = division
    each = f"{threads} {'thread' if threads == 1 else 'threads'}"
    return f"1 instance, {each}" if instances == 1 else f"{instances} instances, {each} each"


def words(rows: Sequence[Row], _: StudyRecord) -> list[str]:
    """Say which point is the best, by what factor it beats one instance with all threads.

    And which is the best within the bound of p99, if there is one.
    """
    best = next((one for one in rows if one.best), None)
    single = next((one for one in rows if one.single), None)
    if best is None:
        return ["No point has a number."]
    found = f"Best: {at(best)}"
    if best is single:
        found += "; no other division of the cores gave more."
    elif single and best.gain:
        found += (
            f", {best.gain.value:.2f} times ({best.gain.low:.2f} to {best.gain.high:.2f}) that of "
            f"one instance with all {single.threads} threads at its best batch, {single.batch}."
        )
    else:
        found += "; one instance with all threads has no number to compare it with."
    why = [f"It is provisional: {best.disturbed}."] if best.provisional else []
    return [found, *why, *words_on_bound(rows, best)]


def words_on_bound(rows: Sequence[Row], best: Row) -> list[str]:
    """Say which point is the best within the bound of p99, if there is one."""
    if best.bound_s is None:
        return []
    bound = f"{1000 * best.bound_s:.3g} ms"
    within = next((one for one in rows if one.best_within_bound), None)
    if within is None:
        return [f"No point is known to have p99 within {bound}."]
    if within is best:
        return [f"Its p99 is within {bound}."]
    return [f"With p99 within {bound}: {at(within)}."]


def at(row: Row) -> str:
    """Format a point with its rate: "2 instances, 4 threads each, at batch 16: 1,240 samples/s"."""
    rate = row.samples_per_s
    known = f"{rate.value:,.4g} samples/s ({rate.low:,.4g} to {rate.high:,.4g})" if rate else "?"
    return f"{row.division}, at batch {row.batch}: {known}"


STUDY = Study(
    name="throughput",
    settings=Settings,
    call=Point,
    row=Row,
    rows=rows,
    about=(
        "Variants on a CPU whose samples per second are also measured with several instances at a "
        "time, by threads and batch."
    ),
    link="Throughput",
    title="Throughput",
    lead=(
        "Samples per second of several instances of an engine at the same time, each a process on "
        "cores of its own, which calls again as soon as its last call has ended. A cell has the "
        "sum over the instances and p99 of the time of a call; the best is framed."
    ),
    note=(
        "A skipped cell could not win or came after the time for all of them; its note says why. "
        "The interval is that of ten blocks of one load. The best of many points is chosen for "
        "being high: expect slightly less of it."
    ),
    words=words,
    chart=Heat(x="batch", y="division", value="samples_per_s", below="p99_s"),
    cpu_only=(
        "instances share the cores of a CPU; cuda: {streams: [2, 4]} measures throughput on a GPU"
    ),
)
