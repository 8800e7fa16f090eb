"""Report content that is measured on request: profiles and causes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tightrope.report.sections.decision import not_run
from tightrope.report.style.numbers import milliseconds, percent, shape_of, sizes
from tightrope.summary.document import Summary

Record = Mapping[str, Any]
# a variant at one shape of one host
Place = tuple[Any, ...]
# groups of operators that a row names
NAMED = 3
OUTSIDE = "outside of operators"
# of what is measured on request, in the summary
KINDS = ("profiles", "causes")


def asked_for(summary: Summary) -> dict[str, Any]:
    """Return of each kind whether there is something to show, and how many of it failed."""
    entries = {name: getattr(summary, name) for name in KINDS}
    found = {name: bool(known) for name, known in entries.items()}
    return {**found, **{f"{name}_failed": failures(known) for name, known in entries.items()}}


def measured_on_request(summary: Summary, name: str, hosts: Mapping[str, str]) -> dict[str, Any]:
    """Return what was measured on request of one model, and what of it could not be measured."""
    profiles, causes = (of_model(getattr(summary, one), name) for one in KINDS)
    return {
        "profile": profile_rows(profiles, hosts),
        "profile_not_run": not_run(profiles),
        "explanations": explanations_by_shape(of_model(summary.explanations, name), hosts),
        "causes": sorted(rows_of(causes, "causes", hosts), key=lambda one: sizes(one["shape"])),
        "causes_not_run": not_run(causes),
        "causes_verified": any(entry.get("status") == "ok" for entry in causes),
    }


def place_of(entry: Any, shape: Any) -> Place:
    """Return what a result at a shape has in common with what was measured of it on request."""
    return entry.get("model"), entry.get("variant"), entry.get("host"), shape_of(shape)


def failures(entries: Iterable[Any]) -> int:
    """Return how many entries failed."""
    return sum(entry["status"] == "failed" for entry in entries)


def of_model(entries: Iterable[Any], name: str) -> list[Any]:
    """Return the entries of one model."""
    return [entry for entry in entries if entry["model"] == name]


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
    return sorted(rows, key=lambda one: (sizes(one["shape"]), one["call_s"]))


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
    return [{"shape": shape, "rows": found[shape]} for shape in sorted(found, key=sizes)]
