"""Record of a cascade: its threshold, its answers, and calls paired with each model alone."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, TypedDict

from tightrope.records.contents import TrafficTest
from tightrope.records.record import Record
from tightrope.records.rounds import Round

# in the place of a variant, of the record of a cascade
CASCADE = "cascade"
# the engines in `rounds` and `peak_rss_bytes`, in their order
SMALL, LARGE, BOTH = range(3)
NAMES = {SMALL: "small", LARGE: "large", BOTH: "cascade"}


class ThresholdTest(TypedDict):
    """A tested threshold: how many examples the small model answered, lost and gained by that."""

    threshold: float
    answered: int
    lost: int
    gained: int
    p_value: float


class Answers(TypedDict):
    """Answers to the same examples, a value per example in each list; `labels` None without any.

    `small` and `large` are the predictions of each model alone, `confidences` the highest softmax
    probability of the small one. `cascade` are the predictions of both as served, `escalated`
    whether the large model answered; both are empty on the calibration split.
    """

    labels: list[int] | None
    small: list[int]
    large: list[int]
    confidences: list[float]
    cascade: list[int]
    escalated: list[bool]


class CascadeTraffic(TypedDict):
    """Tests of LoadGen on the evaluation split, see TrafficRecord.

    Their `name` is small, large or cascade. `plan` are the settings of traffic that apply, `reason`
    is why the tests failed, None where they did not.
    """

    plan: dict[str, Any]
    samples: int
    tests: list[TrafficTest]
    reason: str | None


@dataclass(kw_only=True)
class CascadeRecord(Record):
    """A small model answers where it is sure enough, and the large one, `model`, elsewhere.

    `variant` is that of the large model, `small_variant` that of `small_model`. `agreement` is the
    share of answers that must be those of the large model; where it is None, `budget_points` of
    accuracy may be lost against it. `tests` are those of thresholds on the calibration split, from
    the highest one on; `threshold` is the lowest whose test passed, None where none did: then the
    large model would answer everything, and nothing is evaluated or timed.

    A request has `batch` examples. `rounds` hold the seconds in which the small model, the large
    model and the cascade answered the same `block_samples` examples of the evaluation split, other
    examples in each round. `peak_rss_bytes` is the memory of their processes, in that order.
    `traffic` is None where it was not asked for. `lost_s` are the seconds lost to other load,
    `busiest` the cores that the busiest programs used, by name.
    """

    CONTENTS: ClassVar[dict[str, Any]] = {
        "tests": list[ThresholdTest],
        "calibration": Answers | None,
        "evaluation": Answers | None,
        "rounds": list[Round],
        "traffic": CascadeTraffic | None,
    }

    cascade: str
    small_model: str
    small_variant: str
    small_engine_sha256: str
    calibration_sha256: str
    data_sha256: str
    agreement: float | None
    budget_points: float
    threads: int
    processors: list[int]
    batch: int
    tests: list[dict[str, Any]] = field(default_factory=list)
    threshold: float | None = None
    calibration: dict[str, Any] | None = None
    evaluation: dict[str, Any] | None = None
    block_samples: int | None = None
    rounds: list[dict[str, Any]] = field(default_factory=list)
    traffic: dict[str, Any] | None = None
    peak_rss_bytes: list[int] = field(default_factory=list)
    lost_s: float = 0.0
    busiest: dict[str, float] = field(default_factory=dict)
