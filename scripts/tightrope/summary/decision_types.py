"""Types of the entries on races, recommendations and quantization in summary.json.

docs/summary-json.md describes the fields.
"""

from typing import Literal, TypedDict

from tightrope.statistics import AccuracyVerdict
from tightrope.summary.result_types import Ratio, Shape

QuantizeVerdict = Literal["quantize", "undecided", "do not quantize"]


class Rejected(TypedDict):
    """A variant that is not recommended."""

    variant: str
    reason: str


class Choice(TypedDict):
    """Which variant to deploy, None if none qualifies."""

    variant: str | None
    why: str
    equal: list[str]
    open: list[str]
    disturbed: list[str]
    provisional: bool
    undecided: list[str]
    rejected: list[Rejected]


class Recommendation(Choice):
    """Which variant to deploy at a shape."""

    model: str
    host: str
    shape: Shape


class RaceRatio(Ratio):
    """How many times as fast `variant` is as `other`."""

    variant: str
    other: str


class RaceOutcome(TypedDict):
    """Outcome of a race of finalists at one shape."""

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


class Race(RaceOutcome):
    """Race of the finalists of a model on one device at one shape."""

    model: str
    host: str
    device: str
    shape: Shape


class QuantizedAccuracy(TypedDict):
    """Change of accuracy from the baseline."""

    delta: float | None
    delta_low: float | None
    delta_high: float | None
    flips: int | None
    samples: int
    verdict: AccuracyVerdict


class QuantizedVariant(TypedDict):
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
