"""How long the first call of a variant takes after pauses of several lengths.

Caches may be cold then, clocks low and threads asleep. Each pause follows a block of calls back to
back, to whose median the call after it is compared.
"""

import math
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec

from tightrope.config.types import DISTINCT, Positive, Shape
from tightrope.jobs.child import Child, cpu_seconds
from tightrope.jobs.progress import ProgressBar
from tightrope.machine.interference import Windows
from tightrope.records.record import kept
from tightrope.statistics import Interval, trimmed_mean
from tightrope.studies import study
from tightrope.studies.study import Bench, Column, Estimate, Study, StudyRecord

# calls after a pause of a second; the number falls with the cube root of the pause
CALLS = 15
FEWEST_CALLS, MOST_CALLS = 7, 30
# fewest undisturbed calls after a pause for a number
FEWEST = 5
WARM_UP_S = 1.0
# the block before each pause: long enough for a stable median and for the clock to rise
BLOCK_S, BLOCK_CALLS = 0.1, 3
# the smallest ratio of two times that a user is told of
MATTERS = 1.10


class Settings(study.Settings, frozen=True):
    """Which pauses, at which shape, and for how long."""

    pauses: Annotated[tuple[Annotated[float, msgspec.Meta(gt=0, le=60)], ...], DISTINCT] = (
        0.1,
        1,
        10,
    )
    """Seconds; 30 calls after a pause of 0.1 s, 15 after 1 s, 7 after 10 s."""
    shape: Shape | None = None
    """One of shapes; null, and a model without it, take the first."""
    max_seconds: Positive = 120
    """Of all calls and pauses of a variant; waiting for a quiet machine comes on top."""


class Call(msgspec.Struct):
    """A call after a pause: `pause_s` was asked for, `paused_s` is since the end of the block.

    `block_s` are the seconds per call of the block before it, back to back. `foreign_cores` are
    those that other programs used from the start of the block to the end of the call.
    """

    pause_s: float
    paused_s: float
    block_s: list[float]
    call_s: float
    foreign_cores: float


class Row(study.Row, kw_only=True):
    """The first calls after pauses of one length."""

    back_to_back_s: Annotated[float | None, Column("Back to back, ms", "ms")] = None
    """The median over the blocks before all pauses."""
    pause_s: Annotated[float, Column("Pause", "s")]
    """One of the configured ones."""
    first_call_s: Annotated[float | None, Column("First call, ms", "ms")] = None
    """The median of the first calls after it; None with too few."""
    slowdown: Annotated[Estimate | None, Column("Of back to back", "ratio", slower=MATTERS)] = None
    """Over calls back to back; None with too few."""
    disturbed_calls: int = 0
    """Calls that do not count."""


def measure(bench: Bench, settings: Settings) -> Iterator[Call]:
    """Yield the calls after all scheduled pauses that end within `max_seconds`."""
    waiting = list(schedule(settings.pauses))
    bench.shape = msgspec.to_builtins(settings.shape)
    with bench.engines([bench.shape]) as (worker,):
        bench.machine.wait()
        worker.ask("first_call", 0)
        worker.ask("warm_up", 0, None, WARM_UP_S, BLOCK_S)
        windows = Windows(bench.processors, lambda: cpu_seconds([worker]))
        began = bench.spent_s
        with ProgressBar("pauses", sum(waiting)) as bar:
            for pause in waiting:
                left = settings.max_seconds - (bench.spent_s - began)
                if pause > left:
                    break
                yield from bench.quietly(lambda: after(worker, pause, left, windows))  # noqa: B023
                bar.add(pause)


def calls_after(pause_s: float) -> int:
    """Return how many calls follow a pause of this length: 30 of 0.1 s, 15 of 1 s, 7 of 10 s."""
    return max(FEWEST_CALLS, min(MOST_CALLS, round(CALLS / pause_s ** (1 / 3))))


def schedule(pauses_s: Sequence[float]) -> Iterator[float]:
    """Yield the pauses in rounds; the lengths of a round are in an order drawn from a fixed seed.

    A longer pause is in fewer of the rounds, at equal distances.
    """
    counts = {pause: calls_after(pause) for pause in pauses_s}
    rounds, order = max(counts.values()), random.Random(0)
    for number in range(rounds):
        due = [
            pause
            for pause, count in counts.items()
            if (number + 1) * count // rounds > number * count // rounds
        ]
        yield from order.sample(due, len(due))


def after(worker: Child, pause_s: float, limit_s: float, windows: Windows) -> Call:
    """Return the call after a block and a pause.

    The pause is slept here, while the engine waits on its pipe, as a server waits for a request: a
    parent that waits for an answer looks at its child twice a second.
    """
    windows.open()
    block = worker.ask("plain_calls", 0, BLOCK_S, BLOCK_CALLS, limit_s)
    time.sleep(pause_s)
    call = worker.ask("plain_calls", 0, 0.0, 1, 0.0)
    return Call(
        pause_s=pause_s,
        paused_s=call["began_s"] - block["ended_s"],
        block_s=block["samples_s"],
        call_s=call["samples_s"][0],
        foreign_cores=windows.close(),
    )


def rows(record: StudyRecord, accept: bool) -> list[Row]:
    """Return a row per length of a pause, the shortest first."""
    blocks = [statistics.median(call.block_s) for call in record.calls]
    back_to_back = statistics.median(blocks) if blocks else None
    limit, found = record.settings["max_seconds"], []
    for pause_s in sorted(record.settings["pauses"]):
        calls = [one for one in record.calls if one.pause_s == pause_s]
        what = f"pauses of {pause_s:g} s"
        counted = kept(calls, FEWEST, what, record.busiest, accept=accept)
        few = f"only {len(calls)} calls within max_seconds = {limit:g}; an interval needs {FEWEST}"
        row = Row(
            back_to_back_s=back_to_back,
            pause_s=pause_s,
            calls=len(counted.calls),
            disturbed_calls=counted.disturbed_calls,
            reason=few if len(calls) < FEWEST else None,
            disturbed=counted.disturbed,
            provisional=counted.provisional,
        )
        if len(counted.calls) >= FEWEST:
            row.first_call_s = statistics.median(one.call_s for one in counted.calls)
            row.slowdown = Estimate.of(slowdown(counted.calls))
        found.append(row)
    return found


def slowdown(calls: Sequence[Call]) -> Interval:
    """Return the time of the call after a pause over that of a call back to back.

    The exponential of the trimmed mean of the log ratios of each call to the median of the block
    directly before its pause, so that a machine that changes its speed slowly changes both.
    """
    logs = [math.log(call.call_s / statistics.median(call.block_s)) for call in calls]
    return Interval(*map(math.exp, trimmed_mean(logs)))


def words(rows: Sequence[Row], _: StudyRecord) -> list[str]:
    """Say after which pauses the first call is slower by so much that it matters.

    Provisional numbers are not told.
    """
    return [
        f"after {one.pause_s:g} s without a call the next one takes {one.slowdown.value:.2f} times "
        f"({one.slowdown.low:.2f} to {one.slowdown.high:.2f}) as long as one back to back: "
        f"{1000 * one.first_call_s:.3g} ms"
        for one in rows
        if one.slowdown and one.first_call_s and one.slowdown.low > MATTERS and not one.provisional
    ]


STUDY = Study(
    name="idleness",
    settings=Settings,
    call=Call,
    row=Row,
    rows=rows,
    about=(
        "Variants whose first call after a pause is timed too, paired with calls back to back: "
        "caches, clocks and threads that sleep."
    ),
    link="After a pause",
    title="First call after a pause",
    lead=(
        "Latencies elsewhere on this page are of calls back to back. After a pause caches may be "
        "cold, clocks low and threads asleep. Each pause follows a short block of calls, to whose "
        "median the next call is compared."
    ),
    note=(
        "“Slower” means that the whole interval is above 1.10. Such variants have a remark in the "
        "table of all results too."
    ),
    words=words,
    remark="pauses",
)
