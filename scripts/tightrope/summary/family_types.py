"""Types of the entries on families in summary.json; docs/summary-json.md describes the fields.

A family is a model, the root, with all models that start from it, directly or through another one.
"""

from typing import Any, Literal, TypedDict

from tightrope.statistics import AccuracyVerdict
from tightrope.summary.result_types import AccuracyChange, Attempt, Ratio, Shape

# what an engine is compared with: one of the root, or of its model's parent
Against = Literal[
    "root_baseline", "root_recommended", "root_quantized", "parent_baseline", "parent_recommended"
]


class FamilyMember(TypedDict):
    """A model of the family: its parent and what was changed of it.

    `changes` has `prune`, `activation`, `distill`, `qat` and `train`, each where the
    checkpoint's manifest has it. `reason` says why no engine of it was timed.
    """

    model: str
    parent: str | None
    changes: dict[str, Any]
    parameters: int
    reason: str | None


class FamilyAccuracy(AccuracyChange):
    """Change of accuracy on the same examples, None with the `reason` where they were not."""

    verdict: AccuracyVerdict | None
    flips: int | None
    reason: str | None


class Comparison(TypedDict):
    """An engine against one of another model, or of the same one.

    `speedup` comes from rounds of both, None where they did not run in the same ones. `accuracy` is
    None without labels.
    """

    model: str
    variant: str
    speedup: Ratio | None
    accuracy: FamilyAccuracy | None


class FamilyEngine(TypedDict):
    """An engine that was timed with those of the other models, or the `reason` why it was not.

    `role` says why it took part: `recommended` by the race of its model, the root's `baseline`, or
    the root's best `quantized` one. `call_s` with its interval is on the scale of the points.
    `verdict` is a sentence, None for the roles other than `recommended`.
    """

    model: str
    variant: str | None
    role: Literal["recommended", "baseline", "quantized"]
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


class FamilyPoint(TypedDict):
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


class FamilyChoice(TypedDict):
    """The fastest recommended engine whose accuracy surely keeps the budget of the root."""

    model: str
    variant: str


class FamilyShape(TypedDict):
    """A family at one shape; `provisional` numbers are those of disturbed rounds."""

    shape: Shape
    fastest: FamilyChoice | None
    rounds: int
    stop: str | None
    disturbed: str | None
    provisional: bool
    engines: list[FamilyEngine]
    points: list[FamilyPoint]


class Family(TypedDict):
    """A family on one device."""

    root: str
    host: str
    device: str
    status: Attempt
    reason: str | None
    measured: str
    members: list[FamilyMember]
    shapes: list[FamilyShape]
