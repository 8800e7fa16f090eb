"""Report table on what settings save that remove a cause of a variant's time."""

from collections.abc import Mapping, Sequence
from typing import Any

from tightrope.report.style.numbers import milliseconds, shape_of

Record = Mapping[str, Any]
MINUS = "\N{MINUS SIGN}"


def causes_section(entries: Sequence[Record], hosts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a row per removed cause, in the order of the shapes.

    Each has the `variant`, its `host` where there are several, `shape`, the `cause`, the `setting`,
    milliseconds of the `call`, the `predicted` and the `saved` interval as text, whether the
    prediction is `met`, whether it is `provisional`, and a `note` on what is not known.
    """
    rows = [
        row(entry, cause, hosts)
        for entry in entries
        if entry.get("status") == "ok"
        for cause in entry.get("causes") or []
    ]
    return sorted(rows, key=lambda one: [size for _, size in one["shape"]])


def row(entry: Record, cause: Record, hosts: Mapping[str, str]) -> dict[str, Any]:
    """Return the row of a cause at one shape."""
    saved = cause.get("saved")
    return {
        "variant": entry.get("variant"),
        "host": hosts.get(str(entry.get("host"))),
        "shape": shape_of(cause),
        "cause": cause["cause"],
        "setting": cause["setting"],
        "call_ms": milliseconds(cause.get("call_s")),
        "predicted": f"{signed(cause['predicted_low'])} to {signed(cause['predicted_high'])}",
        "saved": signed(saved["value"]) if saved else None,
        "interval": f"{signed(saved['low'])} to {signed(saved['high'])}" if saved else None,
        "met": {True: "met", False: "missed", None: None}[cause.get("within")],
        "provisional": cause.get("provisional"),
        "note": cause.get("reason") or cause.get("disturbed"),
    }


def signed(seconds: float) -> str:
    """Format seconds in milliseconds, what is lost with a minus sign."""
    value = milliseconds(abs(seconds)) or "0"
    return f"{MINUS}{value}" if seconds < 0 else value
