"""What each folded section of the page found, in one line beside its title."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from tightrope.decide.quantize import VERDICTS, Quantization
from tightrope.report.style.numbers import megabytes, percent, plural, ratio, shape_label, whole
from tightrope.report.tables import grouped
from tightrope.summary.document import Summary

# by the verdict on quantizing an engine
WORDS = {"quantize": "pays in", "undecided": "undecided in", "do not quantize": "does not pay in"}


def findings(
    summary: Summary, studies: Sequence[Mapping[str, Any]], graphs: int
) -> defaultdict[str, str]:
    """Return a line by the id of a section, empty for one that has none.

    `studies` are their sections, `graphs` how many ONNX files are shown.
    """
    measured = [one for one in summary.results if one.status == "ok"]
    chosen = {(one.model, one.variant) for one in summary.recommendations}
    found = defaultdict(str)
    found["answers"] = "; ".join(
        f"{one.variant}: {whole(accuracy.flips)} of {whole(accuracy.samples)} changed, "
        f"{whole(accuracy.lost)} lost, {whole(accuracy.gained)} gained"
        for one in measured
        if (accuracy := one.accuracy) and accuracy.flips and (one.model, one.variant) in chosen
    )
    found["int8"] = quantizing(summary.quantization)
    found["inside"] = plural(graphs, "ONNX file")
    calls = [(one, call) for one in summary.profiles for call in one.shapes if call.shares]
    for one, call in [pair for pair in calls if (pair[0].model, pair[0].variant) in chosen][:1]:
        shares = ", ".join(
            f"{bound} {percent(part)}" for bound, part in (call.shares or {}).items()
        )
        found["profile"] = f"{one.variant}, {shape_label(call.shape)}: {shares}"
    causes = [cause for entry in summary.causes for cause in entry.causes]
    found["causes"] = f"{len(causes)} tried, {sum(bool(one.within) for one in causes)} as predicted"
    found["training"] = plural(len(summary.training), "training")
    if sizes := [one.size_bytes for one in measured if one.size_bytes]:
        found["costs"] = f"{megabytes(min(sizes))} to {megabytes(max(sizes))} MB"
    counts = Counter(one.status for one in summary.results)
    lost = ((counts[status], status) for status in ("failed", "unavailable"))
    found["not-run"] = ", ".join(f"{count} {status}" for count, status in lost if count)
    for section in studies:
        rows = sum(len(model["rows"]) for model in section["models"])
        found[section["study"].name] = plural(rows, "row")
    return found


def quantizing(entries: Sequence[Quantization]) -> str:
    """Return in which engines quantizing pays, each at its best shape, with the device and model.

    These are left out where there is one.
    """
    places = grouped(((one.engine, one.device, one.model), one) for one in entries)
    several = [len({key[index] for key in places}) > 1 for index in range(3)]
    told: dict[str, list[str]] = {}
    for key, own in places.items():
        best = min(own, key=lambda one: (VERDICTS.index(one.verdict), -factor(one)))
        named = [part for part, many in zip(key[1:], several[1:], strict=True) if many]
        place = " of ".join([" on ".join([key[0], *named[: several[1]]]), *named[several[1] :]])
        told.setdefault(best.verdict, []).append(f"{place} ({ratio(best.speedup) or 'not timed'})")
    return "; ".join(f"{WORDS[word]} {', '.join(told[word])}" for word in VERDICTS if word in told)


def factor(entry: Quantization) -> float:
    """Return how many times as fast as in float, 0 where it was not timed."""
    return (entry.speedup.ratio if entry.speedup else None) or 0.0
