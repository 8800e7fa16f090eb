"""Types of the entries on traffic, training and activations in summary.json.

docs/summary-json.md describes the fields. Times are in seconds; None means not known.
"""

from typing import Any, TypedDict

from tightrope.statistics import SpeedVerdict
from tightrope.summary.measured import Measured
from tightrope.summary.result_types import (
    Attempt,
    LatencyFields,
    Ratio,
    ReferenceAccuracy,
    VariantFields,
)


class Lengths(TypedDict):
    """Distinct lengths in tokens, and how many samples have each."""

    tokens: list[int]
    samples: list[int]


class Changes(TypedDict):
    """Number of predictions that differ from those of padding `fixed`, by their margin."""

    changed: int | None
    ties_changed: int | None


class Gain(TypedDict):
    """Throughput over that of padding `fixed`, with its 95 % interval."""

    gain: float | None
    gain_low: float | None
    gain_high: float | None
    gain_verdict: SpeedVerdict | None


class TrafficRow(Changes, Gain):
    """Rates and tail latency with one kind of padding."""

    padding: str
    disturbed: str | None
    provisional: bool
    samples_per_s: float | None
    single_stream_p90_s: float | None
    single_stream_p99_s: float | None
    server_per_s: float | None
    server_p99_s: float | None
    server_reason: str | None
    padding_share: float | None
    padding_gain: float | None


class Traffic(Measured):
    """A variant under the traffic of LoadGen."""

    threads: int
    batch: int
    p99_bound_s: float
    samples: int | None
    longest: int | None
    height: int | None
    width: int | None
    edges: list[int]
    lengths: Lengths
    rows: list[TrafficRow]
    loadgen: str | None


class Spread(TypedDict):
    """Mean, sample standard deviation (None for one), lowest and highest value over the seeds."""

    mean: float
    spread: float | None
    lowest: float
    highest: float


class SeedRun(TypedDict):
    """One training: values of each epoch."""

    seed: int
    seconds: list[float]
    loss: list[float]
    accuracy: list[float]


class TrainingRuns(TypedDict):
    """What the runs of a training say, all None if it failed."""

    amp: str | None
    samples: int | None
    held_out_samples: int | None
    micro_batches: int | None
    epoch_s: Spread | None
    first_epoch_s: Spread | None
    compile_s: Spread | None
    samples_per_s: Spread | None
    loss: Spread | None
    accuracy: Spread | None
    peak_rss_bytes: int | None
    peak_device_bytes: int | None
    runs: list[SeedRun] | None


class Training(TrainingRuns):
    """Speed and accuracy of a measured training."""

    model: str
    host: str
    device: str
    status: Attempt
    reason: str | None
    measured: str
    threads: int
    unit: str | None
    recipe: dict[str, Any]
    activation: str | None
    epochs: int
    seeds: list[int]
    reference: str | None
    disturbed: str | None
    provisional: bool
    speedup: Ratio | None
    accuracy_change: Spread | None


class ActivationRow(VariantFields, LatencyFields):
    """Latency of a variant paired with the same one of the reference; no times if it failed."""

    status: Attempt
    reason: str | None


class Activation(TypedDict):
    """A model compared with one that differs from it only in its activation."""

    model: str
    reference: str
    host: str
    device: str
    accuracy: ReferenceAccuracy | None
    latency: list[ActivationRow]
