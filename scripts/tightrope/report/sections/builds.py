"""Report section on several builds of an engine, and the remark on variants where they differ."""

from collections.abc import Mapping, Sequence
from typing import Any

from tightrope.report.style.numbers import megabytes, milliseconds, ratio, ratio_interval, shape_of

Record = Mapping[str, Any]
WORD = "builds"


def builds_section(entries: Sequence[Record], hosts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a row per measured variant, in their order.

    Each has the `variant`, its `host` where there are several, `shape`, the number of `builds`,
    `fastest_ms` and `slowest_ms`, the `spread` and its `interval` as text, whether it `matters`
    or is `provisional`, `files` in words, the `list` of builds, and a `note` on what is disturbed.
    """
    return [row(entry, hosts) for entry in entries if entry.get("status") == "ok"]


def row(entry: Record, hosts: Mapping[str, str]) -> dict[str, Any]:
    """Return the row of a variant."""
    builds, spread = entry.get("builds") or [], entry.get("spread")
    times = [one["call_s"] for one in builds if one.get("call_s") is not None]
    return {
        "variant": entry.get("variant"),
        "host": hosts.get(str(entry.get("host"))),
        "shape": shape_of(entry.get("shape") or {}),
        "builds": len(builds),
        "fastest_ms": milliseconds(min(times, default=None)),
        "slowest_ms": milliseconds(max(times, default=None)),
        "spread": ratio(spread),
        "interval": ratio_interval(spread),
        "matters": matters(entry),
        "provisional": entry.get("provisional"),
        "files": files_words(entry),
        "list": [build_words(one) for one in builds],
        "note": entry.get("disturbed"),
    }


def matters(entry: Record) -> bool:
    """Return whether builds surely differ by so much that it matters."""
    spread = entry.get("spread")
    return bool(spread and spread["matters"] and not entry.get("provisional"))


def files_words(entry: Record) -> str:
    """Say whether the files of the builds differ: in size, in content or not at all."""
    if entry.get("identical"):
        return "identical"
    return "of different sizes" if entry.get("sizes_differ") else "different, of the same size"


def build_words(build: Record) -> str:
    """Format a build: "9.80 ms (9.70 to 9.90), the median; 90.9 MB, built in 3.1 s"."""
    parts = []
    if build.get("call_s") is not None:
        low, high = (milliseconds(build.get(end)) for end in ("low", "high"))
        over = ratio(build.get("over_median"))
        of = f"{over} of the median" if over else "the median"
        parts.append(f"{milliseconds(build['call_s'])} ms ({low} to {high}), {of}")
    size = megabytes(build.get("size_bytes"))
    return "; ".join([*parts, f"{size} MB, built in {build['build_s']:.1f} s"])


def builds_words(entry: Record) -> list[str]:
    """Say by how much builds differ, where that matters; provisional numbers are not told."""
    spread = entry.get("spread")
    if not matters(entry):
        return []
    return [
        f"the slowest of {len(entry.get('builds') or [])} builds from the same files takes "
        f"{ratio(spread)} ({ratio_interval(spread)}) of the fastest"
    ]
