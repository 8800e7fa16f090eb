"""Report content that is measured on request: throughput, profiles, causes and stability."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tightrope.report.sections.causes import causes_section
from tightrope.report.sections.explanations import explanations_by_shape
from tightrope.report.sections.idleness import WORD as PAUSES
from tightrope.report.sections.idleness import idleness_section, idleness_words
from tightrope.report.sections.not_run import not_run
from tightrope.report.sections.profile import profile_section
from tightrope.report.sections.steadiness import Remark
from tightrope.report.sections.throughput import throughput_section
from tightrope.report.style.numbers import shape_of
from tightrope.summary.document import Summary

Record = Mapping[str, Any]
# a variant at one shape of one host
Place = tuple[Any, ...]


def asked_for(summary: Summary, hosts: Mapping[str, str]) -> dict[str, Any]:
    """Return of each kind whether there is something to show, and how many of it failed."""
    kinds: dict[str, Sequence[Record]] = {
        "throughput": summary.get("throughput") or [],
        "profiles": summary.get("profiles") or [],
        "causes": summary.get("causes") or [],
        "idleness": summary.get("idleness") or [],
    }
    return {
        **{name: bool(entries) for name, entries in kinds.items()},
        **{f"{name}_failed": failures(entries) for name, entries in kinds.items()},
    }


def measured_on_request(summary: Summary, name: str, hosts: Mapping[str, str]) -> dict[str, Any]:
    """Return what was measured on request of one model, and what of it could not be measured."""
    throughput = of_model(summary.get("throughput"), name)
    profiles = of_model(summary.get("profiles"), name)
    causes = of_model(summary.get("causes"), name)
    idleness = of_model(summary.get("idleness"), name)
    return {
        "throughput": throughput_section(throughput, hosts),
        "throughput_not_run": not_run(throughput),
        "profile": profile_section(profiles, hosts),
        "profile_not_run": not_run(profiles),
        "explanations": explanations_by_shape(of_model(summary.get("explanations"), name), hosts),
        "causes": causes_section(causes, hosts),
        "causes_not_run": not_run(causes),
        "causes_verified": any(entry.get("status") == "ok" for entry in causes),
        "idleness": idleness_section(idleness, hosts),
        "idleness_not_run": not_run(idleness),
    }


def stability_remarks(summary: Summary) -> dict[Place, list[Remark]]:
    """Return the remarks on rows of latency that pauses would change a lot."""
    told = ((one, idleness_words(one)) for one in summary.get("idleness") or ())
    return {place_of(one, one["shape"]): [Remark(PAUSES, words)] for one, words in told if words}


def place_of(entry: Record, shape: Record) -> Place:
    """Return what a result at a shape has in common with what was measured of it on request."""
    return entry.get("model"), entry.get("variant"), entry.get("host"), shape_of(shape)


def failures(entries: Iterable[Record]) -> int:
    """Return how many entries failed."""
    return sum(entry.get("status") == "failed" for entry in entries)


def of_model(entries: Iterable[Any] | None, name: str) -> list[Any]:
    """Return the entries of one model."""
    return [entry for entry in entries or () if entry.get("model") == name]
