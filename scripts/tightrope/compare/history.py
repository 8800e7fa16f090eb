"""The latencies of recommended variants over the reports of a folder."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from tightrope.compare.differences import differences
from tightrope.compare.read import Report, RowKey, read_report
from tightrope.compare.rows import log_of, seconds_of, why_not
from tightrope.compare.steps import Measured, Step, steps
from tightrope.errors import TightropeError
from tightrope.report.style.numbers import shape_of


class Point(NamedTuple):
    """A measurement: when, its report's place in time, seconds per call, and its speed-up's log.

    `log` is None for the baseline, and where other load disturbed the row.
    """

    at: datetime
    report: int
    seconds: float
    log: Measured | None


@dataclass(frozen=True)
class Series:
    """A variant at a shape on a host over time; `steps` are of its time over the baseline's.

    The place of a step is that of its first point in `judged`, the points that have a logarithm.
    """

    row: RowKey
    host: str
    points: list[Point]
    judged: list[Point]
    steps: list[Step]


def read_history(folder: Path) -> list[Report]:
    """Return the summaries in a folder and in those below it, the oldest first.

    Raises TightropeError where there is none, and for a JSON file that is no summary.
    """
    paths = sorted(folder.rglob("*.json"))
    if not paths:
        raise TightropeError(f"{folder}: no summary (*.json) is in it")
    reports = [read_report(path) for path in paths]
    return sorted(reports, key=lambda one: (moment_of(one), one.path))


def moment_of(report: Report) -> datetime:
    """Return when a summary was made; raise TightropeError where it is no date and time."""
    try:
        at = datetime.fromisoformat(report.created)
    except ValueError:
        raise TightropeError(f"{report.path}: created is no date and time") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def all_series(reports: Sequence[Report]) -> list[Series]:
    """Return a series for each variant that some report recommends, by host and shape."""
    rows = sorted({place for report in reports for place in recommended_rows(report)})
    return [one for row, host in rows if (one := series_of(reports, row, host)).points]


def recommended_rows(report: Report) -> Iterable[tuple[RowKey, str]]:
    """Yield the rows that a report recommends, with the key of the host."""
    for one in report.document.get("recommendations") or ():
        if one.get("variant") and one.get("model"):
            row = RowKey(one["model"], one["variant"], shape_of(one.get("shape") or {}))
            yield row, str(one.get("host"))


def series_of(reports: Sequence[Report], row: RowKey, host: str) -> Series:
    """Return the series of a variant at a shape on a host."""
    points = []
    for number, report in enumerate(reports):
        entry = report.rows.get(row)
        if entry is None or str(report.results[row.key].get("host")) != host:
            continue
        seconds, log = seconds_of(entry), log_of(report, row)
        if seconds is None:
            continue
        judged = log is not None and log.error > 0 and why_not(report, row) is None
        # a speed-up is the inverse of a time
        time = Measured(-log.value, log.error) if judged and log else None
        points.append(Point(moment_of(report), number, seconds, time))
    known = [one for one in points if one.log]
    return Series(row, host, points, known, steps([one.log for one in known if one.log]))


def what_changed(reports: Sequence[Report], series: Series, step: Step) -> list[str]:
    """Return what is different between the reports before and after a step, for that variant."""
    before, after = (reports[series.judged[place].report] for place in (step.place - 1, step.place))
    own = [one for one in differences(before, after) if series.row.key in one.concerns]
    return [one.name for one in own]
