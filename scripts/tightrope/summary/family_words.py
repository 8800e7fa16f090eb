"""The verdict on a member of a family in one sentence."""

from tightrope.statistics import AccuracyVerdict
from tightrope.summary.family_types import Against, Comparison, FamilyAccuracy
from tightrope.summary.result_types import Ratio

BUDGET: dict[AccuracyVerdict, str] = {
    "kept": "within the budget",
    "dropped": "outside the budget",
    "undecided": "too few examples to say whether within the budget",
}


def member_verdict(model: str, against: dict[Against, Comparison]) -> str | None:
    """Return the verdict on the recommended engine of `model`, None without any comparison.

    Its speed is compared with its parent's recommended engine, that of the root with its baseline;
    its accuracy with the root's baseline, which the budget is relative to.
    """
    own = against.get("parent_recommended") or against.get("root_baseline")
    root = against.get("root_baseline")
    parts = []
    if own and own["speedup"]:
        of = "its baseline" if own["model"] == model else f"the best of {own['model']}"
        parts.append(speed_words(own["speedup"], of))
    if root and root["accuracy"]:
        of = "its baseline" if root["model"] == model else f"{root['model']} ({root['variant']})"
        parts.append(accuracy_words(root["accuracy"], of))
    return ", ".join(parts) or None


def speed_words(speedup: Ratio, of: str) -> str:
    """Format a speed-up over something: `2.1 times as fast as the best of large`."""
    match speedup["verdict"]:
        case "disturbed":
            return f"not compared in speed with {of}: disturbed by other load"
        case "tie":
            return f"as fast as {of}"
        case _:
            return f"{speedup['ratio']:.2g} times as fast as {of}"


def accuracy_words(accuracy: FamilyAccuracy, of: str) -> str:
    """Format a change of accuracy: `0.4 points less accurate than large (…): within the budget`."""
    delta, verdict = accuracy["delta"], accuracy["verdict"]
    if delta is None or verdict is None:
        return f"not compared in accuracy with {of}: {accuracy['reason']}"
    size = f"{100 * abs(delta):.1f}"
    if size == "0.0":
        return f"as accurate as {of}: {BUDGET[verdict]}"
    return f"{size} points {'less' if delta < 0 else 'more'} accurate than {of}: {BUDGET[verdict]}"
