"""Report section on searches for a smaller model: their path, and where it ended."""

from collections.abc import Iterable, Mapping
from typing import Any

from tightrope.report.style.numbers import TIMES, points, ratio, ratio_interval, significant, whole

Record = Mapping[str, Any]
# why a search ended, by the word in the summary
ENDINGS = {
    "target met": "The target is met, so no smaller model was tried.",
    "budget exceeded": "The last model exceeds the budget, so no smaller one was tried.",
    "time over": "The time that was given is over.",
    "smallest structure": "There is no smaller structure to try.",
    "not built": "The last model could not be trained, built or run.",
}


def compressions_section(entries: Iterable[Record]) -> list[dict[str, Any]]:
    """Return a part per search: its `model`, `sentences` and the `rows` of its models."""
    return [
        {
            "model": entry.get("model"),
            "variant": entry.get("variant"),
            "sentences": [result_of(entry), ENDINGS.get(str(entry.get("ended")), "")],
            "rows": [row(one, entry) for one in entry.get("models") or ()],
        }
        for entry in entries
    ]


def result_of(entry: Record) -> str:
    """Say what was asked for and what was reached."""
    asked = f"Asked: {entry.get('target'):g}{TIMES} the speed of the baseline of its parent within "
    asked += f"{entry.get('budget_points'):g} points."
    if entry.get("chosen") is None:
        return f"{asked} No model is within the budget; the structure stays as it is."
    reached = f"{significant(entry.get('reached'))}{TIMES}"
    short = entry.get("short_by") or 0
    return f"{asked} Reached: {reached}" + (f", {100 * short:.0f} % short of it." if short else ".")


def row(model: Record, entry: Record) -> dict[str, Any]:
    """Return the row of a model of a search."""
    accuracy, speed = model.get("accuracy") or {}, model.get("speedup") or {}
    low, high = (points(accuracy.get(end)) for end in ("low", "high"))
    neurons = model.get("neurons")
    return {
        "factor": f"{model.get('factor'):g}{TIMES}",
        "chosen": model.get("factor") == entry.get("chosen"),
        "blocks": " + ".join(map(str, model.get("blocks") or ())),
        "neurons": whole(neurons),
        "parameters": whole(model.get("parameters")),
        "change": points(accuracy.get("delta")),
        "interval": f"{low} to {high}" if low and high else None,
        "ratio": ratio(speed),
        "ratio_interval": ratio_interval(speed),
        "minutes": significant((model.get("seconds") or 0) / 60, 2),
        "reason": model.get("reason"),
    }
