"""Stability of the measurements: remarks on each row, and the number of rows with each."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tightrope.report.sections.gpu import gpu_steadiness
from tightrope.report.style.numbers import plural
from tightrope.report.tables import grouped
from tightrope.summary.document import Summary, remeasure_command
from tightrope.summary.results import LatencyRow, Result

Record = Mapping[str, Any]


class Remark(NamedTuple):
    """Word that marks a row, and its meaning in sentences."""

    word: str
    reasons: list[str]


def remarks(result: Result, row: LatencyRow) -> list[Remark]:
    """Return the remarks on a latency row; empty for a steady row.

    The words are `disturbed` or `provisional`, `noisy`, `time limit` and `threads`.
    """
    row_remarks = []
    if row.disturbed:
        word = "provisional" if row.provisional else "disturbed"
        row_remarks.append(Remark(word, [row.disturbed]))
    if row.noisy:
        row_remarks.append(Remark("noisy", row.noise))
    if row.stop == "time limit":
        # a baseline alone has no interval
        few = ", with fewer quiet pairs of blocks than asked for"
        why = ": the interval is wider than asked for" if row.speedup else few
        row_remarks.append(Remark("time limit", [f"stopped at the time limit{why}"]))
    if sentence := other_threads(result, row):
        row_remarks.append(Remark("threads", [sentence]))
    return row_remarks


def disturbed_section(summary: Summary) -> dict[str, Any] | None:
    """Return the measurements that other load left without a number; None if undisturbed.

    `undecided` is whether they could change the decision at some shape. `what` has the counts per
    kind of measurement, `reasons` the distinct reasons, `command` measures them again.
    """
    rows = [row for one in summary.results for row in one.latency]
    lost = [(row.disturbed, row.provisional) for row in rows if row.disturbed]
    races = [race.reason for race in summary.races if race.status == "disturbed"]
    trained = [(one.disturbed, one.provisional) for one in summary.training if one.disturbed]
    what = [f"{len(lost)} of {len(rows)} latencies"] if lost else []
    what += [f"the decision at {plural(len(races), 'shape')}"] if races else []
    for name, entries in summary.studies.items():
        own = [row for entry in entries for row in entry.rows if row["disturbed"]]
        lost += [(row["disturbed"], row["provisional"]) for row in own]
        what += [f"{plural(len(own), 'row')} of {name}"] if own else []
    what += [plural(len(trained), "training")] if trained else []
    if not what:
        return None
    return {
        "undecided": any(entry.provisional for entry in summary.recommendations),
        "what": what,
        "provisional": any(provisional for _, provisional in [*lost, *trained]),
        "command": remeasure_command(summary),
        "reasons": [*dict.fromkeys(filter(None, [one for one, _ in [*lost, *trained]] + races))],
    }


def other_threads(result: Result, row: LatencyRow) -> str | None:
    """Report that more or fewer threads worked than configured, None if neither.

    Only on a CPU: driving a GPU needs one thread.
    """
    configured, busy = result.threads, row.threads_busy
    if result.device != "cpu" or configured is None or busy is None:
        return None
    if busy > configured:
        return f"kept {busy} threads busy, {configured} were configured"
    return f"kept {busy} of {configured} threads busy" if busy < configured else None


def steadiness(results: Iterable[Result]) -> dict[str, Any] | None:
    """Count the latency rows with each remark; None without any row.

    `rows`, `noisy`, `late` (None if no row could have stopped late), `disturbed` (pairs of blocks
    disturbed by other load), `spread` (the largest variation of the baseline's time between jobs, a
    fraction), `thread_rows`, `threads`: (sentence, variants) pairs, and `gpu`: (title, sentence)
    pairs.
    """
    results = list(results)
    rows = [(result, row) for result in results for row in result.latency]
    if not rows:
        return None
    told = ((other_threads(result, row), result.variant) for result, row in rows)
    threads = grouped((sentence, variant) for sentence, variant in told if sentence)
    stops = [row.stop for _, row in rows if row.stop not in ("", "calls")]
    return {
        "rows": len(rows),
        "noisy": sum(row.noisy for _, row in rows),
        "late": stops.count("time limit") if stops else None,
        "disturbed": sum(row.disturbed_pairs for _, row in rows),
        "spread": max(row.machine_spread for _, row in rows),
        "thread_rows": sum(len(variants) for variants in threads.values()),
        "threads": [(sentence, list(dict.fromkeys(names))) for sentence, names in threads.items()],
        "gpu": gpu_steadiness(results),
    }
