"""Report content that is measured on request: throughput, profiles, causes and idleness."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tightrope.report.sections.decision import not_run
from tightrope.report.sections.profile import explanations_by_shape, profile_rows, rows_of, sizes_of
from tightrope.report.sections.steadiness import Remark
from tightrope.report.sections.throughput import throughput_section
from tightrope.report.style.numbers import milliseconds, ratio, ratio_interval, shape_of
from tightrope.summary.document import Summary

Record = Mapping[str, Any]
# a variant at one shape of one host
Place = tuple[Any, ...]
WORD = "pauses"
# of what is measured on request, in the summary
KINDS = ("throughput", "profiles", "causes", "idleness")


def asked_for(summary: Record) -> dict[str, Any]:
    """Return of each kind whether there is something to show, and how many of it failed."""
    kinds: dict[str, Sequence[Record]] = {name: summary.get(name) or [] for name in KINDS}
    return {
        **{name: bool(entries) for name, entries in kinds.items()},
        **{f"{name}_failed": failures(entries) for name, entries in kinds.items()},
    }


def measured_on_request(summary: Record, name: str, hosts: Mapping[str, str]) -> dict[str, Any]:
    """Return what was measured on request of one model, and what of it could not be measured."""
    throughput, profiles, causes, idleness = (of_model(summary.get(one), name) for one in KINDS)

    return {
        "throughput": throughput_section(throughput, hosts),
        "throughput_not_run": not_run(throughput),
        "profile": profile_rows(profiles, hosts),
        "profile_not_run": not_run(profiles),
        "explanations": explanations_by_shape(of_model(summary.get("explanations"), name), hosts),
        "causes": sorted(rows_of(causes, "causes", hosts), key=sizes_of),
        "causes_not_run": not_run(causes),
        "causes_verified": any(entry.get("status") == "ok" for entry in causes),
        "idleness": rows_of(idleness, "pauses", hosts),
        "idleness_not_run": not_run(idleness),
    }


def stability_remarks(summary: Summary) -> dict[Place, list[Remark]]:
    """Return the remarks on rows of latency that pauses would change a lot."""
    told = ((one, idleness_words(one)) for one in summary.get("idleness") or ())
    return {place_of(one, one["shape"]): [Remark(WORD, words)] for one, words in told if words}


def place_of(entry: Record, shape: Record) -> Place:
    """Return what a result at a shape has in common with what was measured of it on request."""
    return entry.get("model"), entry.get("variant"), entry.get("host"), shape_of(shape)


def failures(entries: Iterable[Record]) -> int:
    """Return how many entries failed."""
    return sum(entry.get("status") == "failed" for entry in entries)


def of_model(entries: Iterable[Any] | None, name: str) -> list[Any]:
    """Return the entries of one model."""
    return [entry for entry in entries or () if entry.get("model") == name]


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
