"""Types of the decisions and families in summary.json; docs/summary-json.md describes them."""

from typing import Any, Literal

from tightrope.records.accuracy import Change
from tightrope.statistics import AccuracyVerdict
from tightrope.summary.result_types import Accuracy, Attempt, Entry, Ratio, Shape

QuantizeVerdict = Literal["quantize", "undecided", "do not quantize"]
Minimized = Literal["latency", "cost", "memory", "energy"]
Bound = Literal["p99_ms", "memory_mb", "accuracy_points"]
Scenario = Literal["single_stream", "offline", "server"]
# what an engine is compared with: one of the root, or of its model's parent
Against = Literal[
    "root_baseline", "root_recommended", "root_quantized", "parent_baseline", "parent_recommended"
]
Role = Literal["recommended", "baseline", "quantized"]


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


class FamilyMember(Entry):
    """A model of the family: its parent and what was changed of it.

    `changes` has `prune`, `activation`, `distill`, `qat` and `train`, each where the
    checkpoint's manifest has it. `reason` says why no engine of it was timed.
    """

    model: str
    parent: str | None
    changes: dict[str, Any]
    parameters: int
    reason: str | None


class FamilyAccuracy(Entry):
    """Change of accuracy on the same examples, None with the `reason` where they were not."""

    change: Change | None = None
    flips: int | None = None
    reason: str | None = None


class Comparison(Entry):
    """An engine against one of another model, or of the same one.

    `speedup` comes from rounds of both, None where they did not run in the same ones. `accuracy` is
    None without labels.
    """

    model: str
    variant: str
    speedup: Ratio | None
    accuracy: FamilyAccuracy | None


class FamilyEngine(Entry):
    """An engine that was timed with those of the other models, or the `reason` why it was not.

    `role` says why it took part: `recommended` by the race of its model, the root's `baseline`, or
    the root's best `quantized` one. `call_s` with its interval is on the scale of the points.
    `verdict` is a sentence, None for the roles other than `recommended`.
    """

    model: str
    variant: str | None
    role: Role
    status: Attempt
    reason: str | None
    size_bytes: int | None
    energy_j: float | None
    call_s: float | None
    low: float | None
    high: float | None
    top1: float | None
    samples: int | None
    front: bool
    against: dict[Against, Comparison]
    verdict: str | None


class FamilyPoint(Entry):
    """A variant of a model: its time per call, and its accuracy change from the root's baseline.

    The time of one that was not timed with the others (`raced`) is its own over that of its model's
    recommended variant, times the time of that one here.
    """

    model: str
    variant: str
    recommended: bool
    raced: bool
    call_s: float
    low: float
    high: float
    delta: float
    delta_low: float
    delta_high: float
    front: bool


class FamilyChoice(Entry):
    """The fastest recommended engine whose accuracy surely keeps the budget of the root."""

    model: str
    variant: str


class FamilyShape(Entry):
    """A family at one shape; `provisional` numbers are those of disturbed rounds."""

    shape: Shape
    fastest: FamilyChoice | None
    rounds: int
    stop: str | None
    disturbed: str | None
    provisional: bool
    engines: list[FamilyEngine]
    points: list[FamilyPoint]


class Family(Entry):
    """A family on one device."""

    root: str
    host: str
    device: str
    status: Attempt
    reason: str | None
    measured: str
    members: list[FamilyMember]
    shapes: list[FamilyShape]
