"""What is said of a decision: the phrase of each reason, for page, terminal and card.

In a phrase `{name:form}` is a value in one of `FORMS`, and `{name:?yes|no}` one of two wordings.
"""

from collections.abc import Callable, Iterable, Sequence
from string import Formatter
from typing import Any

from tightrope.decide.bounds import Bound, Goal, given
from tightrope.decide.goal import BoundCost, GoalDecision, missed
from tightrope.decide.recommend import Recommendation
from tightrope.decide.result import Reason

# name and unit of each
BOUNDS: dict[Bound, tuple[str, str]] = {
    "p99_ms": ("p99", "ms"),
    "memory_mb": ("memory", "MB"),
    "accuracy_points": ("accuracy loss", "points"),
}
# a bound that costs less than this is said to cost nothing
NOTHING = 0.0005
BY_SIZE = "{smallest:?the smallest files|files of equal size, the first by name}"
PHRASES = {
    # why not: it cannot be deployed
    "failed": "failed: {reason}",
    "unavailable": "unavailable: {reason}",
    "unmeasured": "not measured at this shape",
    "unmeasured_traffic": "not measured under this traffic",
    "disturbed": "disturbed: {why}",
    "accuracy": "accuracy {verdict}: {change:points}{samples_needed:remedy}",
    "accuracy_unknown": "accuracy undecided: its baseline has no predictions",
    # why not: the race
    "slower": "slower: {ratio:times} as fast as {other} {ratio:ends}",
    "slower_paired": "slower: {ratio:times} the baseline {ratio:ends}",
    "slower_alone": "slower: {call_s:time} per call",
    "slower_device": "slower: {call_s:time} per call, {other} takes {other_s:time}",
    "equal": "equally fast (within {within:percent}); not smaller",
    "open": "not told apart: {ratio:times} as fast as {other} {ratio:ends}",
    "out": "slower than {other:one} in the race",
    "died": "failed in the race: {reason}",
    "too_many": "not raced: {most} variants are surely faster than the baseline by more",
    "no_winner": "the race has no winner",
    # why not: the goal
    "over": "{bound:may_be} {value:number} {bound:unit}, {by:number} {bound:unit} over the bound "
    "of {limit:number} {bound:unit}",
    "not_known": "{bound:name} not known: {why:reason}",
    "not_measured": "not measured",
    "p50_over": "p50 is {p50_ms:number} ms already, over the bound of {limit_ms:number} ms",
    "few_calls": "{calls} of {needed} calls{configure:calls}",
    "no_rate": "{why}",
    "no_traffic": "not measured with {scenario}",
    "no_energy": "the machine shows no {of} of it",
    "unknown": "its {of} was not measured",
    "more": "more {of}: {value:number} {unit}, {other} has {other_value:number}",
    "not_the_winner": "not slower by estimate, but not the winner of the race: {other} is",
    "not_chosen": "not chosen",
    # why it is chosen
    "only": "the only variant {judged:?that keeps the accuracy|measured}",
    "only_timed": "the only one with a time, of {of} variants{judged:? that keep the accuracy|}",
    "fastest": "the fastest of the {of} variants {judged:?that keep the accuracy|measured}",
    "fastest_timed": "the fastest of the {timed} with a time, of {of} variants"
    "{judged:? that keep the accuracy|}",
    "as_fast": "as fast as {others:names} (within {within:percent}); " + BY_SIZE,
    "hardly_slower": "by estimate at most {within:percent} slower than {other}, not told apart; "
    + BY_SIZE,
    "none_faster": "the fastest by estimate; not told apart from {others:names}, at most "
    "{within:percent} faster",
    "time_limit": "the fastest by estimate; time did not suffice to tell it from {others:names}",
    # why nothing is
    "all_disturbed": "disturbed: other load kept the processors busy"
    "{on_gpu:?, or the GPU was throttled or shared,|} while the variants were timed",
    "not_run": "the race was not run",
    "none_kept": "no variant keeps the accuracy",
    "none_measured": "nothing could be measured",
    # to quantize or not
    "faster_than": "faster than {other}",
    "slower_than": "slower than {other}",
    "no_faster_than": "no faster than {other}",
    "not_faster_than": "not significantly faster than {other}",
    "apart": "not raced with {other}: the finalists did not fit in memory together",
    "few_rounds": "too few undisturbed rounds paired with {other}",
    "loaded": "disturbed by other load",
    "another_faster": "not raced with {other}: another quantized variant is faster",
    "not_evaluated": "accuracy was not evaluated: speed alone decides",
    "verdict": "accuracy {verdict}",
    "few_samples": "accuracy undecided: more samples can tell",
    "float_too": "the accuracy of {other} itself is {verdict}",
}


def number(value: float) -> str:
    """Format a number with three significant digits, without an exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def milliseconds(seconds: float) -> str:
    """Format seconds in milliseconds with three significant digits."""
    return f"{number(1e3 * seconds)} ms"


def points(change: Sequence[float]) -> str:
    """Format an accuracy change in percentage points with its interval."""
    value, low, high = (100 * one for one in change)
    text = f"{value:+.1f} points ({low:+.1f} to {high:+.1f})"
    return text.replace("-", "\N{MINUS SIGN}")


FORMS: dict[str, Callable[[Any], str]] = {
    "number": number,
    "time": lambda seconds: "an unknown time" if seconds is None else milliseconds(seconds),
    "points": points,
    "percent": lambda share: f"{100 * share:.2g} %",
    "times": lambda ratio: f"{ratio[0]:.2f} times",
    "ends": lambda ratio: f"({ratio[1]:.2f} to {ratio[2]:.2f})",
    "names": ", ".join,
    "one": lambda name: name or "others",
    "name": lambda bound: BOUNDS[bound][0],
    "may_be": lambda bound: BOUNDS[bound][0] + " may be" * (bound == "accuracy_points"),
    "unit": lambda bound: BOUNDS[bound][1],
    "remedy": lambda needed: f"; about {needed:,} examples could tell" if needed else "",
    "calls": lambda calls: f"; set latency: {{calls: {calls}}}" if calls else "",
    "reason": lambda why: said(Reason(**why)),
}


class Phrase(Formatter):
    """Fills in a phrase."""

    def format_field(self, value: Any, spec: str) -> str:
        """Return a value in the form that the phrase names."""
        if spec.startswith("?"):
            return spec[1:].split("|")[not value]
        return FORMS[spec](value) if spec else str(value)


def said(reason: Reason) -> str:
    """Return the phrase of a reason with its values."""
    return Phrase().format(PHRASES[reason.code], **reason.values)


def at_most(bound: Bound, limit: float) -> str:
    """Format a bound: `p99 at most 5 ms`."""
    name, unit = BOUNDS[bound]
    return f"{name} at most {number(limit)} {unit}"


def cost_words(goal: Goal, cost: BoundCost) -> str:
    """Return what a bound of a goal cost: `p99 at most 5 ms costs 25 % more latency than …`."""
    words = at_most(cost.bound, cost.limit)
    if cost.more is None:
        return f"{words}: what it costs is not known"
    if cost.more < NOTHING:
        return f"{words} costs nothing"
    return f"{words} costs {number(100 * cost.more)} % more {goal.minimize} than {cost.variant}"


def sentence(goal: Goal, decision: GoalDecision) -> str:
    """Return a decision for a goal in one sentence, with its pace and with what each bound cost."""
    shape, bounds = decision.shape, " and ".join(at_most(*one) for one in given(goal))
    where = (
        f" at {', '.join(f'{name} {size}' for name, size in shape.sizes.items())}" if shape else ""
    )
    if goal.traffic:
        where = f" under {goal.traffic.replace('_', ' ')} traffic"
    words = f"For the least {goal.minimize}{where}" + (f" with {bounds}" if bounds else "")
    if decision.variant is not None and decision.value is not None:
        words += f": {decision.variant}, {number(decision.value)} {decision.unit}"
        if pace := decision.pace:
            slower = f", with {number(pace.ratio)} times the latency of {pace.variant}"
            words += slower * (pace.variant != decision.variant) + ", the fastest"
        words += f", padding {decision.padding}" if decision.padding else ""
        return "; ".join([words, *(cost_words(goal, one) for one in decision.bounds)])
    if (nearest := decision.nearest) is None:
        return f"{words}: no variant qualifies"
    known = all(one.value is not None for one in nearest.misses)
    meets = "meets it" if known else "is known to meet it"
    short = " and ".join(said(missed(one)) for one in nearest.misses)
    return f"{words}: no variant {meets}; the nearest is {nearest.variant}: {short}"


def why(one: Recommendation, goal: Goal | None, decisions: Iterable[GoalDecision]) -> str:
    """Return why a recommendation is what it is; at the shape of a goal, that decision's words."""
    if goal is None or one.why.code != "goal":
        return said(one.why)
    place = (one.model, one.host, one.shape)
    return next(sentence(goal, it) for it in decisions if (it.model, it.host, it.shape) == place)
