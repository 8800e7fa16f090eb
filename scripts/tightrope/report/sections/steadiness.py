"""Steadiness of the measurements: remarks on each row, and what NVML told of the GPU."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tightrope.decide.result import Gpu, LatencyRow, Result
from tightrope.machine.interference import SLOWDOWNS
from tightrope.report.style.numbers import plural, whole
from tightrope.report.tables import grouped
from tightrope.summary.document import Summary, disturbed, remeasure_command


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
    lost = disturbed(summary)
    every = sum(len(one.latency) for one in summary.results)
    latencies, races, trained = (lost[kind] for kind in ("latencies", "races", "training"))
    studies = {name: lost[name] for name in summary.studies if lost[name]}
    what = [f"{len(latencies)} of {every} latencies"] if latencies else []
    what += [f"the decision at {plural(len(races), 'shape')}"] if races else []
    what += [f"{plural(len(own), 'row')} of {name}" for name, own in studies.items()]
    what += [plural(len(trained), "training")] if trained else []
    if not what:
        return None
    told = [*latencies, *(one for own in studies.values() for one in own), *trained]
    return {
        "undecided": any(entry.provisional for entry in summary.recommendations),
        "what": what,
        "provisional": any(provisional for _, provisional in told),
        "command": remeasure_command(summary),
        "reasons": list(dict.fromkeys(why for why, _ in [*told, *races])),
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


def steadiness(results: Sequence[Result]) -> dict[str, Any] | None:
    """Count the latency rows with each remark; None without any row.

    `rows`, `noisy`, `late` (None if no row could have stopped late), `disturbed` (pairs of blocks
    disturbed by other load), `spread` (the largest variation of the baseline's time between jobs, a
    fraction), `threads`: the variants of the rows by sentence, and `gpu`: (title, sentence) pairs.
    """
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
        "threads": threads,
        "gpu": gpu_steadiness(results),
    }


def gpu_steadiness(results: Iterable[Result]) -> list[tuple[str, str]]:
    """Return titles and sentences on the GPU's clocks, throttling and other processes.

    They are over all rows that were timed on a GPU; empty without any.
    """
    rows = [row.gpu for result in results for row in result.latency if row.gpu]
    if not rows:
        return []
    return [clocks(rows), throttling(rows), *other_processes(rows)]


def clocks(rows: list[Gpu]) -> tuple[str, str]:
    """Return whether the clocks were locked, as far as NVML tells, their range, and the heat."""
    told = {row.clocks_locked for row in rows}
    title = "GPU clocks held by a setting" if told == {True} else "GPU clocks, locked or not"
    if False in told:
        title = "GPU clocks not locked"
    lowest = [row.lowest_sm_clock_mhz for row in rows]
    facts = [
        measured("SM clock", lowest + [row.sm_clock_mhz for row in rows], "MHz"),
        measured("beside it the baseline's", [row.baseline_sm_clock_mhz for row in rows], "MHz"),
        measured("memory clock", [row.memory_clock_mhz for row in rows], "MHz"),
        measured("highest temperature", [row.temperature_c for row in rows], "°C"),
    ]
    sentence = "; ".join(filter(None, facts)) or "the driver reports neither clocks nor temperature"
    remedy = " Locked clocks repeat better: nvidia-smi --lock-gpu-clocks." if False in told else ""
    return title, f"{sentence[0].upper()}{sentence[1:]}.{remedy}"


def measured(name: str, values: list[float | None], unit: str) -> str | None:
    """Format the range of the known values, None without any."""
    known = [value for value in values if value is not None]
    ends = dict.fromkeys(whole(end) or "" for end in (min(known), max(known))) if known else {}
    return f"{name} {' to '.join(ends)} {unit}" if known else None


def throttling(rows: list[Gpu]) -> tuple[str, str]:
    """Return why the GPU was throttled and in how many rows, and what that means."""
    known = [row.throttled for row in rows if row.throttled is not None]
    reasons = sorted({reason for throttled in known for reason in throttled})
    if not reasons:
        title = "GPU not throttled" if known else "GPU throttling not known"
        return title, f"Known in {len(known)} of {len(rows)} rows."
    counts = [
        f"{reason} ({sum(reason in one for one in known)} of {len(rows)} rows)"
        for reason in reasons
    ]
    slowed = SLOWDOWNS.intersection(reasons)
    meaning = (
        "Pairs of blocks with a thermal or hardware slowdown are disturbed and left out."
        if slowed
        else "No pair of blocks is left out for it: that is how the GPU runs under this load."
    )
    return f"GPU throttled: {', '.join(counts)}", meaning


def other_processes(rows: list[Gpu]) -> list[tuple[str, str]]:
    """Return that other processes were on the GPU or may have been, empty without any."""
    known = [row.other_processes for row in rows if row.other_processes is not None]
    if not known:
        sentence = "The driver does not list the process that was timed, as within a container. "
        sentence += "Nothing tells whether the GPU was shared."
        return [("Other processes on the GPU not known", sentence)]
    sentence = (
        f"Up to {max(known)} at a time. Pairs of blocks in which the driver saw one compute are "
        "disturbed and left out; of a MIG instance it does not tell."
    )
    return [("Other processes on the GPU", sentence)] if max(known) else []


def gpu_memory(results: Iterable[Result]) -> dict[tuple[str | None, str], int]:
    """Return the most GPU memory at any shape, in bytes by host and variant, where it is known."""
    found: dict[tuple[str | None, str], int] = {}
    for result in results:
        states = [row.gpu for row in result.latency if row.gpu]
        known = [one.memory_bytes for one in states if one.memory_bytes is not None]
        if known:
            found[result.host, result.variant] = max(known)
    return found


def streams_section(results: Iterable[Result]) -> dict[str, Any] | None:
    """Return the table of throughput on several streams, None where none was measured.

    `counts` are the numbers of streams; each of `rows` has a result, its row at a shape, and its
    rates by count.
    """
    rows = [
        (result, row, {rate.streams: rate for rate in row.streams.rates})
        for result in results
        for row in result.latency
        if row.streams
    ]
    counts = sorted({count for *_, rates in rows for count in rates})
    return {"counts": counts, "rows": rows} if rows else None
