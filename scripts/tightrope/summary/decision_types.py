"""Types of the decisions in summary.json; docs/summary-json.md describes the fields."""

from typing import Literal

from tightrope.statistics import AccuracyVerdict
from tightrope.summary.result_types import Accuracy, Entry, Ratio, Shape

QuantizeVerdict = Literal["quantize", "undecided", "do not quantize"]
Minimized = Literal["latency", "cost", "memory", "energy"]
Bound = Literal["p99_ms", "memory_mb", "accuracy_points"]
Scenario = Literal["single_stream", "offline", "server"]


class Rejected(Entry):
    """A variant that is not recommended."""

    variant: str
    reason: str


class Recommendation(Entry):
    """Which variant to deploy at a shape, None if none qualifies."""

    model: str
    host: str
    shape: Shape
    variant: str | None
    why: str
    equal: list[str]
    open: list[str]
    disturbed: list[str]
    provisional: bool
    undecided: list[str]
    rejected: list[Rejected]


class RaceRatio(Ratio, kw_only=True):
    """How many times as fast `variant` is as `other`."""

    variant: str
    other: str


class Race(Entry):
    """Race of the finalists of a model on one device at one shape."""

    model: str
    host: str
    device: str
    shape: Shape
    status: Literal["decided", "disturbed", "failed"]
    variant: str | None
    fastest: str | None
    equal: list[str]
    open: list[str]
    within: float
    provisional: bool
    reason: str | None
    raced: list[str]
    left_out: dict[str, str]
    out: dict[str, str]
    rounds: int
    heats: int
    stop: str | None
    ratios: list[RaceRatio]


class QuantizedAccuracy(Entry):
    """Change of accuracy from the baseline."""

    delta: float | None
    delta_low: float | None
    delta_high: float | None
    flips: int | None
    samples: int
    verdict: AccuracyVerdict | None

    @classmethod
    def of(cls, accuracy: Accuracy) -> "QuantizedAccuracy":
        """Return what of an accuracy speaks for or against a variant."""
        return cls(*(getattr(accuracy, name) for name in cls.__struct_fields__))


class QuantizedVariant(Entry):
    """Whether a quantized variant is worth it, paired with the engine's best float variant."""

    variant: str
    verdict: QuantizeVerdict
    why: list[str]
    failed: str | None
    speedup: Ratio | None
    accuracy: QuantizedAccuracy | None


class Quantization(QuantizedVariant):
    """Whether to quantize an engine at one shape; the fields are those of its best variant."""

    model: str
    host: str
    device: str
    engine: str
    shape: Shape
    unquantized: str
    others: list[QuantizedVariant]


class Goal(Entry):
    """What to minimize and within which bounds, as configured."""

    minimize: Minimized
    shape: Shape | None = None
    traffic: Scenario | None = None
    p99_ms: float | None = None
    memory_mb: float | None = None
    accuracy_points: float | None = None


class Miss(Entry):
    """A bound that a variant does not keep: its value, and by how much it is over the limit.

    `value` and `by` are in the bound's unit, None where the value is not known; `why` says why.
    """

    bound: Bound
    limit: float
    value: float | None
    by: float | None
    why: str | None


class BoundCost(Entry):
    """What a bound costs: the best variant without it, and the chosen one's value over its value.

    `more` is a fraction, 0 if the bound changes nothing; None without a chosen variant.
    """

    bound: Bound
    limit: float
    variant: str | None
    value: float | None
    more: float | None
    words: str


class Nearest(Entry):
    """The variant that comes nearest to a goal that nothing meets, and the bounds it misses."""

    variant: str
    value: float
    misses: list[Miss]


class GoalDecision(Entry):
    """The variant for the goal; `value` is in `unit`.

    `shape` or `padding` is where the value was measured, `traffic` the scenario of LoadGen.
    """

    model: str
    host: str
    shape: Shape | None
    traffic: Scenario | None
    padding: str | None
    variant: str | None
    value: float | None
    unit: str
    sentence: str
    provisional: bool
    bounds: list[BoundCost]
    nearest: Nearest | None
    rejected: list[Rejected]


class Cost(Entry):
    """Running and build costs of a result at a shape; an inference is one input of a batch.

    `prepare_s` are the seconds of calibrating, quantizing and measuring its operators, 0 in float.
    With `search_s` and `build_s` they are `spent_s`. `saved_s` is the time saved per inference over
    the baseline. After `break_even_inferences` it has paid for `spent_s`; `break_even_at_most` is
    the same at the low end of the speed-up.
    """

    model: str
    variant: str
    host: str
    shape: Shape
    inferences_per_s: float | None
    price_per_hour: float | None
    cost_per_million: float | None
    prepare_s: float | None
    build_s: float | None
    search_s: float | None
    spent_s: float | None
    saved_s: float | None
    break_even_inferences: float | None
    break_even_at_most: float | None
