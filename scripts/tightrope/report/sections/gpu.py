"""The GPU in the report: how steady it was, memory of each variant, throughput on streams."""

from collections.abc import Iterable
from typing import Any

from tightrope.machine.interference import SLOWDOWNS
from tightrope.report.style.numbers import whole
from tightrope.summary.results import Gpu, Result


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
