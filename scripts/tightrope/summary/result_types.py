"""Types of results, models and hosts in summary.json; docs/summary-json.md describes the fields.

Times are in seconds, sizes in bytes, accuracies are fractions; None means not known.
"""

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict, TypeVar

from tightrope.statistics import AccuracyVerdict, Interval, SpeedVerdict, speed_verdict

Kind = TypeVar("Kind")
Status = Literal["ok", "failed", "unavailable"]
Attempt = Literal["ok", "failed"]


class Host(TypedDict):
    """Machine on which something was measured, and the libraries used on it.

    `name` is that of its kind of node, where the configuration names one.
    """

    name: NotRequired[str]
    cpu: str
    isa: list[str]
    cores: int
    memory_bytes: int | None
    gpu: str | None
    gpu_uuids: list[str]
    driver: str | None
    python: str
    libraries: dict[str, str | None]


class Gpu(TypedDict):
    """The GPU while a shape was timed: medians, extremes and unions over its blocks."""

    sm_clock_mhz: float | None
    lowest_sm_clock_mhz: float | None
    baseline_sm_clock_mhz: float | None
    memory_clock_mhz: float | None
    power_w: float | None
    temperature_c: float | None
    throttled: list[str] | None
    clocks_locked: bool | None
    other_processes: int | None
    memory_bytes: int | None


class StreamRate(TypedDict):
    """Throughput on a number of streams with its 95 % interval, or the `reason` why not."""

    streams: int
    throughput_per_s: float | None
    low: float | None
    high: float | None
    blocks: int
    reason: str | None


class Streams(TypedDict):
    """Throughput by number of streams; `best` is the number with the highest."""

    rates: list[StreamRate]
    best: int | None


class OperatorSensitivity(TypedDict):
    """Effect on the logits of quantizing one operator, all others in float."""

    operator: str
    agreement: float
    logit_error: float | None
    kl: float
    sqnr_db: float | None


class Sensitivity(TypedDict):
    """Operators of a model under one scheme and calibration, the highest `kl` first."""

    samples: int
    operators: list[OperatorSensitivity]


class Truncation(TypedDict):
    """How many of so many texts were cut at `max_sequence` tokens."""

    texts: int
    truncated: int
    max_sequence: int


class Model(TypedDict):
    """A model with its data; `data` has the source and the samples of each split.

    `reference` is for how many texts the model was compared with what was brought, `matched` says
    how its outputs have got their labels.
    `left_out` has the rows of each part of the source, and how many of them are left out, by the
    reason; `truncation` is by split, that of train at the `sequence` of the recipe.
    `chance` is the accuracy of always answering the most frequent label of the evaluation split,
    `thumbnails` has images with changed answers by their index in that split.
    """

    task: str
    activation: str | None
    parameters: int
    reference: int | None
    matched: str | None
    checkpoint_sha256: str
    labels: list[str] | None
    data: dict[str, str | int | None]
    left_out: dict[str, dict[str, int]]
    truncation: dict[str, Truncation]
    baselines: dict[str, str]
    chance: float | None
    thumbnails: dict[str, str]
    sensitivity: dict[str, Sensitivity]


class Shape(TypedDict):
    """Sizes of an input: `sequence` in tokens for texts, `height` and `width` for images.

    `tokens` is how many of the sequence are no padding; without it all of them.
    """

    batch: int
    sequence: NotRequired[int]
    tokens: NotRequired[int]
    height: NotRequired[int]
    width: NotRequired[int]


class Ratio(TypedDict):
    """Ratio of two times with its 95 % interval; all None if other load left no measurement."""

    ratio: float | None
    low: float | None
    high: float | None
    verdict: SpeedVerdict | Literal["disturbed"]


class VariantFields(TypedDict):
    """Name of a variant and its parts."""

    variant: str
    device: str
    engine: str
    precision: str
    calibration: str | None


class FlippedExample(TypedDict):
    """An example whose prediction differs from the baseline's."""

    index: int
    text: str | None
    label: str | int
    baseline: str | int
    prediction: str | int
    baseline_margin: float
    margin: float


class AccuracyChange(TypedDict):
    """Change of accuracy on the same examples; None if they were not the same."""

    delta: float | None
    delta_low: float | None
    delta_high: float | None
    gained: int | None
    lost: int | None
    p_value: float | None
    detectable: float | None
    large_enough: bool | None
    samples_needed: int | None


class TopOne(TypedDict):
    """Share of right predictions with its 95 % interval."""

    top1: float
    low: float
    high: float
    samples: int


class Accuracy(TopOne, AccuracyChange):
    """Accuracy of a variant, and its change and distance from the baseline."""

    verdict: AccuracyVerdict
    flips: int | None
    agreement: float | None
    logit_error: float | None
    kl: float | None
    flipped: list[FlippedExample] | None


class ReferenceAccuracy(TopOne, AccuracyChange):
    """Accuracy of a model, and its change from a model with another activation."""

    verdict: AccuracyVerdict | None


class Trial(TypedDict):
    """One step of a search; `in_float` counts operators."""

    smoothquant: float | None
    in_float: int
    delta: float
    delta_low: float
    delta_high: float
    flips: int
    verdict: AccuracyVerdict
    seconds: float


class Search(TypedDict):
    """What decided whether int8-auto is smoothed, and which of its operators stay in float."""

    in_float: list[str]
    smoothquant: float | None
    samples: int
    budget_points: float
    seconds: float
    operators: int
    trials: list[Trial]


class Times(TypedDict, total=False):
    """Latency statistics over calls, None without calls or where they are too few."""

    samples: int
    p50_s: float | None
    p90_s: float | None
    p99_s: float | None
    mean_s: float | None
    throughput_per_s: float | None
    device_p50_s: float | None
    streams: Streams | None
    energy_j: float | None


class LatencyFields(Times, total=False):
    """Latency at one shape."""

    batch: int
    sequence: int
    tokens: int
    height: int
    width: int
    pairs: int
    disturbed_pairs: int
    disturbed: str | None
    provisional: bool
    stop: str
    first_call_s: float | None
    speedup: Ratio | None
    machine_spread: float
    threads_busy: float | None
    cores_used: float | None
    gpu: Gpu | None
    noise: list[str]
    noisy: bool


class LatencyRow(LatencyFields):
    """Latency of a variant at one shape, on the scale that it shares with raced variants."""

    raced: bool
    paired_s: float | None


class BuildFields(TypedDict):
    """What the manifest of an engine says of its build; `options` depend on the engine."""

    size_bytes: int | None
    build_s: float | None
    build_peak_rss_bytes: int | None
    executed: dict[str, dict[str, int]] | None
    options: dict[str, Any] | None


class MeasuredFields(TypedDict):
    """What a latency record says of the engine as a whole."""

    engine_sha256: str | None
    measured: str | None
    threads: int | None
    baseline_failed: str | None
    load_s: float | None
    first_call_s: float | None
    peak_rss_bytes: int | None


class Result(VariantFields, BuildFields, MeasuredFields):
    """A variant of a model: its engine, accuracy and latency; all None where it cannot run."""

    model: str
    status: Status
    reason: str | None
    host: str | None
    baseline: str | None
    accuracy: Accuracy | None
    search: Search | None
    latency: list[LatencyRow]


def interval_of(entry: Ratio | None) -> Interval | None:
    """Return the interval of a ratio of times, None if it was not measured."""
    if entry is None or entry["ratio"] is None or entry["low"] is None or entry["high"] is None:
        return None
    return Interval(entry["ratio"], entry["low"], entry["high"])


def ratio_entry(ratio: Interval) -> Ratio:
    """Return a ratio of times with its interval and verdict."""
    return {
        "ratio": ratio.value,
        "low": ratio.low,
        "high": ratio.high,
        "verdict": speed_verdict(ratio),
    }


def picked(kind: type[Kind], source: Mapping[str, Any]) -> Kind:
    """Return an entry of this type from a mapping that has all of its fields."""
    found: Any = {name: source[name] for name in kind.__annotations__}
    return found


def nothing(kind: type[Kind]) -> Kind:
    """Return an entry of this type in which nothing is known."""
    found: Any = dict.fromkeys(kind.__annotations__)
    return found
