"""Report content that is measured on request: profiles and causes."""

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any

from msgspec.structs import asdict

from tightrope.report.sections.decision import not_run
from tightrope.report.style.numbers import percent
from tightrope.summary.document import Summary
from tightrope.summary.measured import Shape
from tightrope.summary.profile import OUTSIDE, Profile, ProfiledCall, Roofline
from tightrope.summary.results import Result

# a variant at one shape of one host
Place = tuple[Any, ...]
# groups of operators that a row names
NAMED = 3


def measured_on_request(summary: Summary, name: str, hosts: Mapping[str, str]) -> dict[str, Any]:
    """Return what was measured on request of one model, and what of it could not be measured."""
    profiles, causes = of_model(summary.profiles, name), of_model(summary.causes, name)
    verified = [one for one in causes if one.status == "ok"]
    rows = [
        {"variant": one.variant, "host": hosts.get(one.host), **asdict(cause)}
        for one in verified
        for cause in one.causes
    ]
    return {
        "profile": profile_rows(profiles, hosts),
        "profile_not_run": not_run(profiles),
        "explanations": of_model(summary.explanations, name),
        "causes": sorted(rows, key=itemgetter("shape")),
        "causes_not_run": not_run(causes),
        "causes_verified": bool(verified),
    }


def place_of(entry: Result, shape: Shape) -> Place:
    """Return what a result at a shape has in common with what was measured of it on request."""
    return entry.model, entry.variant, entry.host, shape


def of_model(entries: Iterable[Any], name: str) -> list[Any]:
    """Return the entries of one model."""
    return [entry for entry in entries if entry.model == name]


def profile_rows(entries: Iterable[Profile], hosts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a row per profiled variant and shape, in the order of the shapes, fastest first.

    Besides the fields of the call it has `of_peak`, and the groups of operators with the `most`
    time in words.
    """
    rows = [
        {
            "variant": entry.variant,
            "host": hosts.get(entry.host),
            "unprofiled": entry.unprofiled,
            **asdict(call),
            "of_peak": of_peak(call.roofline),
            "most": group_words(call),
        }
        for entry in entries
        if entry.status == "ok"
        for call in entry.shapes
    ]
    return sorted(rows, key=itemgetter("shape", "call_s"))


def of_peak(roofline: Roofline | None) -> str | None:
    """Return the share of the machine's peak that a call reaches, and that memory allows.

    None where either is not known.
    """
    if roofline is None or not roofline.peak_per_s or not roofline.roof_per_s:
        return None
    peak, roof = roofline.peak_per_s, roofline.roof_per_s
    reached = percent(roofline.operations_per_s / peak)
    return f"{reached}, memory allows {percent(roof / peak)}" if roof < peak else reached


def group_words(call: ProfiledCall) -> str | None:
    """Return the groups that take most of a call, with their shares; None without a profiler."""
    if not call.groups and not call.outside:
        return None
    parts = {one.group: one.share for one in call.groups} | {OUTSIDE: call.outside or 0.0}
    largest = sorted(parts.items(), key=lambda part: -part[1])[:NAMED]
    return ", ".join(f"{name} {percent(share)}" for name, share in largest)
