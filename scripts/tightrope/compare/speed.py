"""Which variants became faster or slower: speed-ups of two runs, over the same reference."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from tightrope.compare.noise import (
    UNSTEADY,
    Log,
    adjusted,
    birge_ratio,
    is_beyond,
    is_untimed,
    log_of,
    p_value,
    scatter,
    seconds_of,
    unsteadiness,
    why_not,
)
from tightrope.compare.read import Key, Report, RowKey, Shape
from tightrope.records.latency import DRIFT_SHARE
from tightrope.statistics import Interval, Z

# in the place of a reference, where both engines ran in the same rounds
SIDE_BY_SIDE = "itself, side by side"
SAME_RECORD = "the same measurement in both reports"

Verdict = Literal["slower", "faster", "same", "not judged"]


# of each row, in the old and the new report
Logs = Mapping[RowKey, tuple[Log | None, Log | None]]


@dataclass(frozen=True)
class SpeedChange:
    """The time of a variant at a shape in the new report over that in the old one.

    `time` is relative to `reference`, with its 95 % interval; None with the `reason` where it is
    not judged. Times `old_s` and `new_s` are seconds per call, each of its own run. `error` is the
    standard error of the logarithm of `time`.
    """

    row: RowKey
    old_s: float | None
    new_s: float | None
    reference: str | None = None
    time: Interval | None = None
    error: float = 0.0
    p: float | None = None
    verdict: Verdict = "not judged"
    reason: str | None = None


def speed_changes(old: Report, new: Report, own: Collection[Key]) -> list[SpeedChange]:
    """Return the change of each row that both reports have, by model, shape and variant.

    `own` are the variants whose own libraries or settings differ, which are no reference.
    """
    groups: dict[tuple[str, str, Shape], list[RowKey]] = {}
    for row in sorted(old.rows.keys() & new.rows.keys()):
        group = row.model, str(new.results[row.key].get("baseline")), row.shape
        groups.setdefault(group, []).append(row)
    found = [one for rows in groups.values() for one in of_group(old, new, rows, own)]
    return judged(found, new)


def of_group(
    old: Report, new: Report, rows: list[RowKey], own: Collection[Key]
) -> Iterable[SpeedChange]:
    """Yield the changes of rows with the same baseline and shape, without verdicts."""
    logs = {row: (log_of(old, row), log_of(new, row)) for row in rows}
    reference = reference_of(old, new, logs, own)
    scatters = [scatter(one, rows) for one in (old, new)]
    scattered = [DRIFT_SHARE * one for one in scatters]
    for row in rows:
        seconds = [seconds_of(one.rows[row]) for one in (old, new)]
        change = SpeedChange(row, seconds[0], seconds[1])
        if reference is None:
            yield replace(change, reason="no variant is unchanged and measured in both")
        elif row == reference:
            yield replace(change, reason="the reference of the others")
        elif is_same_record(old, new, row):
            yield replace(change, reason=SAME_RECORD)
        elif max(scatters) > UNSTEADY:
            yield replace(change, reason="the baseline's time changed too much within a run")
        elif reason := next(filter(None, (why_not(one, row) for one in (old, new))), None):
            yield replace(change, reason=reason)
        else:
            yield compared(
                change, reference, logs, [unsteadiness(old, new, row, reference), *scattered]
            )


def is_same_record(old: Report, new: Report, row: RowKey) -> bool:
    """Return whether both reports have a row from one measurement, of one engine at one time."""
    results = [one.results[row.key] for one in (old, new)]
    facts = [[one.get(name) for name in ("engine_sha256", "measured")] for one in results]
    return facts[0] == facts[1] and None not in facts[0]


def reference_of(old: Report, new: Report, logs: Logs, own: Collection[Key]) -> RowKey | None:
    """Return the row over which the others are compared: the baseline, if it is the same in both.

    Else the unchanged one with the narrowest intervals, None without any.
    """
    can = {
        row: math.hypot(before.error, after.error)
        for row, (before, after) in logs.items()
        if before and after and row.key not in own
        if not any(is_untimed(one, row) for one in (old, new))
    }
    return min(can, key=lambda row: (can[row], row), default=None)  # a baseline's interval is 0


def compared(
    change: SpeedChange, reference: RowKey, logs: Logs, unsteady: list[float]
) -> SpeedChange:
    """Return the change of a row over the reference, without its verdict."""
    parts = [log for row in (change.row, reference) for log in logs[row] if log is not None]
    (before, after), (before_reference, after_reference) = parts[:2], parts[2:]
    value = before.value - before_reference.value - (after.value - after_reference.value)
    error = math.hypot(*(one.error for one in parts), *unsteady)
    time = Interval(math.exp(value), 0.0, math.inf)
    return replace(change, reference=reference.variant, time=time, error=error)


def judged(changes: list[SpeedChange], new: Report) -> list[SpeedChange]:
    """Return the changes with intervals, p values corrected for their number, and verdicts."""
    rows = [one for one in changes if one.time]
    z = {one.row: math.log(one.time.value) / one.error for one in rows if one.time}
    scale = birge_ratio(alike(z, new))
    ps = dict(zip(z, adjusted([p_value(one / scale) for one in z.values()]), strict=True))
    return [with_verdict(one, ps[one.row], scale) if one.time else one for one in changes]


def alike(z: Mapping[RowKey, float], report: Report) -> list[list[float]]:
    """Return standardized differences of the same engine and precision together.

    What changes one of them, such as a library or the code of its kernels, mostly changes all.
    """
    kinds: dict[tuple[str, Any, Any], list[float]] = {}
    for row, value in z.items():
        result = report.results[row.key]
        kind = row.model, result.get("engine"), result.get("precision")
        kinds.setdefault(kind, []).append(value)
    return [*kinds.values()]


def with_remeasured(
    changes: list[SpeedChange], found: Mapping[RowKey, Interval | str]
) -> list[SpeedChange]:
    """Return the changes, where engines were timed side by side by that alone.

    `found` has the time of the new engine over that of the old one with its 95 % interval, or why
    there is none: then the reports decide. P values are corrected among these rows.
    """
    times = {row: one for row, one in found.items() if isinstance(one, Interval) and one.low > 0}
    logs = {
        row: Log(math.log(one.value), math.log(one.high / one.low) / (2 * Z))
        for row, one in times.items()
    }
    ps = adjusted([p_value(one.value / one.error) for one in logs.values()])
    beside = dict(zip(logs, ps, strict=True))

    def remeasured(change: SpeedChange) -> SpeedChange:
        if change.row not in times:
            why = found.get(change.row)
            return replace(change, reason=f"not timed side by side: {why}") if why else change
        log = logs[change.row]
        own = replace(change, reference=SIDE_BY_SIDE, time=times[change.row], error=log.error)
        return with_verdict(replace(own, reason=None), beside[change.row], 1.0)

    return [remeasured(one) for one in changes]


def with_verdict(change: SpeedChange, p: float, scale: float) -> SpeedChange:
    """Return the change with its interval and verdict, all errors times `scale`."""
    assert change.time
    value, error = math.log(change.time.value), scale * change.error
    ends = (math.exp(value + side * Z * error) for side in (0, -1, 1))
    verdict: Verdict = "slower" if value > 0 else "faster"
    verdict = verdict if is_beyond(p) else "same"
    return replace(change, time=Interval(*ends), error=error, p=p, verdict=verdict)
