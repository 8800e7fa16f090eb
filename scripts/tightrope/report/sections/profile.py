"""Report section on what bounds the calls of one model's variants, and what removes that."""

from collections.abc import Mapping, Sequence
from typing import Any

from tightrope.report.style.numbers import MINUS, gain, milliseconds, shape_of

Record = Mapping[str, Any]
BOUNDS = ("compute", "memory", "overhead")
# groups of operators that a row names
NAMED = 3
OUTSIDE = "outside of operators"


def profile_section(entries: Sequence[Record], hosts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a row per profiled variant and shape, in the order of the shapes, fastest first.

    Each has the `variant`, its `host` where there are several, `shape`, `call_ms`, `around_ms`
    (before and after the call), the `ceiling` of the whole request, `of_peak`, the `bound`,
    percentages of the three `shares`, the largest `groups` in words, and the longest `operators`.
    Without a profiler `unprofiled` has the reason.
    """
    rows = [
        call_row(entry, call, hosts)
        for entry in entries
        if entry.get("status") == "ok"
        for call in entry.get("shapes") or []
    ]
    return sorted(rows, key=lambda one: ([size for _, size in one["shape"]], one["call_s"]))


def call_row(entry: Record, call: Record, hosts: Mapping[str, str]) -> dict[str, Any]:
    """Return the row of a variant at one shape."""
    shares = call.get("shares") or {}
    return {
        "variant": entry.get("variant"),
        "host": hosts.get(str(entry.get("host"))),
        "shape": shape_of(call),
        "call_s": call["call_s"],
        "call_ms": milliseconds(call["call_s"]),
        "around_ms": around_ms(call),
        "ceiling": gain(call.get("ceiling")),
        "of_peak": of_peak(call.get("roofline")),
        "bound": call.get("bound"),
        "shares": [percent(shares.get(bound)) for bound in BOUNDS],
        "groups": group_words(call),
        "operators": [operator_row(one) for one in call.get("operators") or []],
        "unprofiled": entry.get("unprofiled"),
    }


def around_ms(call: Record) -> str | None:
    """Return the milliseconds before and after the call, None if they are not known."""
    parts = [call.get("prepare_s"), call.get("finish_s")]
    known = [part for part in parts if part is not None]
    return milliseconds(sum(known)) if len(known) == len(parts) else None


def of_peak(roofline: Record | None) -> str | None:
    """Return the share of the machine's peak that a call reaches, and that memory allows.

    None where either is not known.
    """
    if not roofline or not roofline.get("peak_per_s"):
        return None
    peak, roof = roofline["peak_per_s"], roofline["roof_per_s"]
    reached = percent(roofline["operations_per_s"] / peak)
    return f"{reached}, memory allows {percent(roof / peak)}" if roof < peak else reached


def group_words(call: Record) -> str | None:
    """Return the groups that take most of a call, with their shares; None without a profiler."""
    parts = {one["group"]: one["share"] for one in call.get("groups") or []}
    if not parts and not call.get("outside"):
        return None
    parts[OUTSIDE] = call.get("outside") or 0.0
    largest = sorted(parts.items(), key=lambda part: -part[1])[:NAMED]
    return ", ".join(f"{name} {percent(share)}" for name, share in largest)


def operator_row(operator: Record) -> dict[str, Any]:
    """Return one of the longest operators."""
    return {
        "name": operator["name"],
        "kind": operator["kind"],
        "type": operator["type"],
        "ms": milliseconds(operator["seconds"]),
        "share": percent(operator["share"]),
    }


def percent(share: float | None) -> str | None:
    """Return a share in percent, None if it is not known."""
    return None if share is None else f"{100 * share:.0f} %"


def explanations_by_shape(
    entries: Sequence[Record], hosts: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return `shape` and `rows` for each shape of the explanations, the smallest first.

    A row has `variant`, its `host` where there are several, the `sentences`, and `parts`: group and
    ms of both variants.
    """
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for entry in entries:
        found.setdefault(tuple(shape_of(entry)), []).append(explanation_row(entry, hosts))
    shapes = sorted(found, key=lambda shape: [size for _, size in shape])
    return [{"shape": shape, "rows": found[shape]} for shape in shapes]


def explanation_row(entry: Record, hosts: Mapping[str, str]) -> dict[str, Any]:
    """Return the row of an explanation."""
    return {
        "variant": entry["variant"],
        "host": hosts.get(str(entry["host"])),
        "sentences": entry["sentences"],
        "parts": [
            {
                "group": part["group"],
                "ms": milliseconds(part["seconds"]),
                "against_ms": milliseconds(part["against_s"]),
            }
            for part in entry["parts"]
        ],
    }


def causes_section(entries: Sequence[Record], hosts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a row per removed cause, in the order of the shapes.

    Each has the `variant`, its `host` where there are several, `shape`, the `cause`, the `setting`,
    milliseconds of the `call`, the `predicted` and the `saved` interval as text, whether the
    prediction is `met`, whether it is `provisional`, and a `note` on what is not known.
    """
    rows = [
        cause_row(entry, cause, hosts)
        for entry in entries
        if entry.get("status") == "ok"
        for cause in entry.get("causes") or []
    ]
    return sorted(rows, key=lambda one: [size for _, size in one["shape"]])


def cause_row(entry: Record, cause: Record, hosts: Mapping[str, str]) -> dict[str, Any]:
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
