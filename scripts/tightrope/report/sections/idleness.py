"""Report section on the first call after a pause, and the remark on variants where it matters."""

from collections.abc import Mapping, Sequence
from typing import Any

from tightrope.report.style.numbers import milliseconds, ratio, ratio_interval, shape_of, whole

Record = Mapping[str, Any]
WORD = "pauses"


def idleness_section(entries: Sequence[Record], hosts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a row per measured variant and pause, variants in their order, short pauses first.

    Each has the `variant`, its `host` where there are several, `shape`, `pause`, `back_to_back_ms`,
    `first_call_ms`, `ratio` and `interval` of the two as text, whether it `matters` or is
    `provisional`, the number of `calls`, and a `note` on what is missing or disturbed.
    """
    return [
        row(entry, pause, hosts)
        for entry in entries
        if entry.get("status") == "ok"
        for pause in entry.get("pauses") or []
    ]


def row(entry: Record, pause: Record, hosts: Mapping[str, str]) -> dict[str, Any]:
    """Return the row of a variant and the pauses of one length."""
    slowdown = pause.get("slowdown")
    return {
        "variant": entry.get("variant"),
        "host": hosts.get(str(entry.get("host"))),
        "shape": shape_of(entry.get("shape") or {}),
        "pause": seconds(pause["pause_s"]),
        "back_to_back_ms": milliseconds(entry.get("back_to_back_s")),
        "first_call_ms": milliseconds(pause.get("first_call_s")),
        "ratio": ratio(slowdown),
        "interval": ratio_interval(slowdown),
        "matters": matters(pause),
        "provisional": pause.get("provisional"),
        "calls": whole(pause.get("calls")),
        "note": pause.get("disturbed") or pause.get("reason"),
    }


def matters(pause: Record) -> bool:
    """Return whether the first call is surely slower by so much that it matters."""
    slowdown = pause.get("slowdown")
    return bool(slowdown and slowdown["matters"] and not pause.get("provisional"))


def seconds(value: float) -> str:
    """Format the length of a pause: "0.1 s"."""
    return f"{value:g} s"


def idleness_words(entry: Record) -> list[str]:
    """Say after which pauses the first call is slower by so much that it matters.

    Provisional numbers are not told.
    """
    return [
        f"after {seconds(pause['pause_s'])} without a call the next one takes "
        f"{ratio(pause['slowdown'])} ({ratio_interval(pause['slowdown'])}) of one back to back: "
        f"{milliseconds(pause.get('first_call_s'))} ms"
        for pause in entry.get("pauses") or []
        if matters(pause)
    ]
