"""Report section on what bounds the calls of one model's variants, and what removes that."""

from collections.abc import Mapping, Sequence
from typing import Any

from tightrope.report.style.numbers import milliseconds, percent, shape_of

Record = Mapping[str, Any]
# groups of operators that a row names
NAMED = 3
OUTSIDE = "outside of operators"


def profile_rows(entries: Sequence[Record], hosts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a row per profiled variant and shape, in the order of the shapes, fastest first.

    Besides the fields of both it has `around_ms` (before and after the call), `of_peak`, and the
    groups of operators with the `most` time in words.
    """
    rows = [
        {
            **row,
            "around_ms": around_ms(row),
            "of_peak": of_peak(row["roofline"]),
            "most": group_words(row),
        }
        for row in rows_of(entries, "shapes", hosts)
    ]
    return sorted(rows, key=lambda one: (sizes_of(one), one["call_s"]))


def rows_of(
    entries: Sequence[Record], parts: str, hosts: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return a row per part of each entry that was measured, with the fields of both.

    `host` is its name where there are several, `shape` as in `shape_of`.
    """
    return [
        {
            **entry,
            **part,
            "host": hosts.get(str(entry["host"])),
            "shape": shape_of(entry.get("shape") or part),
        }
        for entry in entries
        if entry["status"] == "ok"
        for part in entry[parts]
    ]


def sizes_of(row: Record) -> list[int]:
    """Return the sizes of a row's shape, by which rows are sorted."""
    return [size for _, size in row["shape"]]


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


def explanations_by_shape(
    entries: Sequence[Record], hosts: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return `shape` and the explanations there as `rows`, the smallest shape first."""
    found: dict[Any, list[dict[str, Any]]] = {}
    for entry in entries:
        row = {**entry, "host": hosts.get(str(entry["host"]))}
        found.setdefault(shape_of(entry), []).append(row)
    rows = [{"shape": shape, "rows": group} for shape, group in found.items()]
    return sorted(rows, key=sizes_of)
