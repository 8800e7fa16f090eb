"""Report section on the decision: what is recommended at each shape, with its measurements."""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from msgspec.structs import asdict

from tightrope.decide.recommend import Recommendation, unkept
from tightrope.decide.result import LatencyRow, Result, Shape
from tightrope.report.sections.steadiness import remarks
from tightrope.report.style.numbers import milliseconds, points, ratio, ratio_interval, shape_label
from tightrope.summary.document import Summary
from tightrope.variants import at_place

# of a latency without a measurement
UNKNOWN = LatencyRow(Shape(batch=0))


def pick(
    summary: Summary, recommendation: Recommendation, measured: Sequence[Result]
) -> dict[str, Any]:
    """Return a recommendation with its measurements.

    `before_s` is the time of its `baseline`, `next` what the race knows of the second, `undecided`
    the faster variants whose accuracy needs more examples, each with its accuracy.
    """
    shape, chosen = recommendation.shape, recommendation.variant
    own = [one for one in measured if one.host == recommendation.host]
    result = next((one for one in own if one.variant == chosen), None)
    row = result.at(shape) if result else None
    told = remarks(result, row) if result and row else []
    accuracies = {one.variant: one.accuracy for one in own}
    undecided = [(one, accuracies.get(one)) for one in recommendation.undecided]
    model = summary.models.get(recommendation.model)
    baselines = model.baselines if model else {}
    baseline = at_place(baselines, result.device, result.host) if result else None
    before = next((one.at(shape) for one in own if one.variant == baseline), None)
    fit = {one.variant for one in own if unkept(one) is None}
    return {
        **asdict(recommendation),
        "undecided": [pair for pair in undecided if pair[1]],
        "result": result,
        "row": row or UNKNOWN,
        "baseline": baseline,
        "before_s": before.paired_s if before else None,
        "next": next_best(summary, recommendation, fit),
        "noise": next((remark.reasons for remark in told if remark.word == "noisy"), []),
    }


def next_best(summary: Summary, chosen: Recommendation, fit: set[str]) -> dict[str, str] | None:
    """Return the second of the race among variants that are `fit`, and the ratio of the times.

    None for a choice for a goal, which compares something else than times.
    """
    place = (chosen.model, chosen.host, chosen.shape)
    ratios = [
        one
        for race in summary.races
        if (race.model, race.host, race.shape) == place and chosen.why.code != "goal"
        for one in race.ratios
        if one.variant == chosen.variant and one.other in fit and one.ratio is not None
    ]
    if not ratios:
        return None
    second = min(ratios, key=attrgetter("ratio"))
    share = f"{ratio(second)} the time ({ratio_interval(second)})"
    return {"variant": second.other, "share": share}


def gained(picks: Sequence[Mapping[str, Any]]) -> str:
    """Return what the first choice that is no baseline gains, as the end of a sentence.

    Empty where the choices are those of several hosts.
    """
    for one in picks if len({one["host"] for one in picks}) == 1 else ():
        row, accuracy = one["row"], one["result"] and one["result"].accuracy
        known = row.speedup and row.speedup.ratio and one["before_s"]
        if not known or one["variant"] == one["baseline"]:
            continue
        before, after = milliseconds(one["before_s"]), milliseconds(row.paired_s)
        words = f": {ratio(row.speedup)} as fast as {one['baseline']}, "
        words += f"{before} \N{RIGHTWARDS ARROW} {after} ms at {shape_label(one['shape'])}"
        if accuracy and accuracy.change is not None:
            change = points(accuracy.delta, accuracy.samples)
            words += f", accuracy {change} points, {accuracy.verdict}"
        return words
    return ""


def fastest(results: Iterable[Result]) -> float:
    """Return where the bars of these results' speed-ups end: the highest end of an interval."""
    rows = [row for result in results for row in result.latency if row.speedup]
    return max([1.0, *(row.speedup.high or 1.0 for row in rows if row.speedup)])
