"""Types of the entries on cascades in summary.json.

docs/summary-json.md describes the fields. Accuracies are fractions; None means not known.
"""

from typing import Literal, TypedDict

from tightrope.records.paired_accuracy import Change
from tightrope.statistics import AccuracyVerdict
from tightrope.summary.measured import Measured
from tightrope.summary.result_types import Ratio, TopOne
from tightrope.summary.workload_types import Rates

Verdict = Literal[
    "use it",
    "accuracy undecided",
    "accuracy dropped",
    "no faster",
    "small alone",
    "large alone",
    "disturbed",
    "failed",
]


class Served(TypedDict):
    """A model alone or the cascade, on the evaluation split; all None where nothing was evaluated.

    `samples_per_s` has the 95 % interval `low` to `high`. `peak_rss_bytes` is of its process.
    """

    accuracy: TopOne | None
    samples_per_s: float | None
    low: float | None
    high: float | None
    peak_rss_bytes: int | None


class Chosen(TypedDict):
    """The chosen threshold on the calibration split, and the answers that it changes there."""

    samples: int
    share: float
    lost: int
    gained: int
    p_value: float


class Agreement(TypedDict):
    """The share of answers that are those of the large model, with Wilson's 95 % interval."""

    share: float
    low: float
    high: float
    samples: int


class CascadeRates(Rates):
    """Rates and tail latency of a model alone or of the cascade; gains are over the large model."""

    served: str


class CascadeTraffic(TypedDict):
    """The three under traffic, in batches of up to `batch`; `p99_bound_s` is that of server.

    `reason` is why there are no rows.
    """

    batch: int
    p99_bound_s: float
    samples: int
    reason: str | None
    rows: list[CascadeRates]


class Cascade(Measured):
    """A small and a large model served as one; `model` and `variant` are those of the large one.

    The small one answers where its confidence is at least `threshold`: on the evaluation split the
    `share`. None is no threshold that keeps `agreement`, or without it `budget_points`.
    `over_large` and `over_small` are its samples per second over those of each model alone.
    `traffic` is None where it was not asked for.
    """

    cascade: str
    small_model: str
    small_variant: str
    agreement: float | None
    budget_points: float
    batch: int
    threshold: float | None
    chosen: Chosen | None
    share: float | None
    small: Served
    large: Served
    both: Served
    agreed: Agreement | None
    against_large: Change | None
    against_small: Change | None
    kept: AccuracyVerdict | None
    small_kept: AccuracyVerdict | None
    over_large: Ratio | None
    over_small: Ratio | None
    traffic: CascadeTraffic | None
    rounds: int
    disturbed_rounds: int
    disturbed: str | None
    provisional: bool
    verdict: Verdict
    sentence: str
