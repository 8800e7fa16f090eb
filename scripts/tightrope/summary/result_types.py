"""Types of results, models and hosts in summary.json; docs/summary-json.md describes the fields.

Times are in seconds, sizes in bytes, accuracies are fractions; None means not known.
"""

from typing import Any, Literal

import msgspec

from tightrope.statistics import AccuracyVerdict, Interval, SpeedVerdict, speed_verdict

Status = Literal["ok", "failed", "unavailable"]
Attempt = Literal["ok", "failed"]


class Entry(msgspec.Struct, forbid_unknown_fields=True):
    """An entry of summary.json; None means not known."""


class Host(Entry):
    """Machine on which something was measured, and the libraries used on it.

    `name` is that of its kind of node, where the configuration names one.
    """

    cpu: str
    isa: list[str]
    cores: int
    python: str
    libraries: dict[str, str | None]
    memory_bytes: int | None = None
    gpu: str | None = None
    gpu_uuids: list[str] = []
    driver: str | None = None
    name: str | None = None


class Gpu(Entry):
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


class StreamRate(Entry):
    """Throughput on a number of streams with its 95 % interval, or the `reason` why not."""

    streams: int
    throughput_per_s: float | None
    low: float | None
    high: float | None
    blocks: int
    reason: str | None


class Streams(Entry):
    """Throughput by number of streams; `best` is the number with the highest."""

    rates: list[StreamRate]
    best: int | None


class OperatorSensitivity(Entry):
    """Effect on the logits of quantizing one operator, all others in float."""

    operator: str
    agreement: float
    logit_error: float | None
    kl: float
    sqnr_db: float | None


class Sensitivity(Entry):
    """Operators of a model under one scheme and calibration, the highest `kl` first."""

    samples: int
    operators: list[OperatorSensitivity]


class Truncation(Entry):
    """How many of so many texts were cut at `max_sequence` tokens."""

    texts: int
    truncated: int
    max_sequence: int


class Model(Entry):
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


class Shape(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Sizes of an input: `sequence` in tokens for texts, `height` and `width` for images.

    `tokens` is how many of the sequence are no padding; without it all of them.
    """

    batch: int
    sequence: int | None = None
    tokens: int | None = None
    height: int | None = None
    width: int | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes that it has, by name."""
        known = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: size for name, size in known if size is not None}

    def __lt__(self, other: "Shape") -> bool:
        """Return whether it is the smaller one, by the sizes in their order."""
        return [*self.sizes.items()] < [*other.sizes.items()]


class Ratio(Entry, kw_only=True):
    """Ratio of two times with its 95 % interval; all None if other load left no measurement."""

    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: SpeedVerdict | Literal["disturbed"]

    @classmethod
    def of(cls, found: Interval) -> "Ratio":
        """Return a ratio of times with its interval and verdict."""
        return cls(ratio=found.value, low=found.low, high=found.high, verdict=speed_verdict(found))


def interval_of(found: Ratio | None) -> Interval | None:
    """Return the interval of a ratio of times, None if it was not measured."""
    if found is None or found.ratio is None or found.low is None or found.high is None:
        return None
    return Interval(found.ratio, found.low, found.high)


class FlippedExample(Entry):
    """An example whose prediction differs from the baseline's."""

    index: int
    text: str | None
    label: str | int
    baseline: str | int
    prediction: str | int
    baseline_margin: float
    margin: float


class TopOne(Entry):
    """Share of right predictions with its 95 % interval."""

    top1: float
    low: float
    high: float
    samples: int


class ComparedAccuracy(TopOne):
    """Accuracy of a model, and its change on the same examples; None if they were not the same."""

    delta: float | None = None
    delta_low: float | None = None
    delta_high: float | None = None
    gained: int | None = None
    lost: int | None = None
    p_value: float | None = None
    detectable: float | None = None
    large_enough: bool | None = None
    verdict: AccuracyVerdict | None = None
    samples_needed: int | None = None

    @property
    def change(self) -> Interval | None:
        """The change of accuracy with its interval, None if it was not compared."""
        if self.delta is None or self.delta_low is None or self.delta_high is None:
            return None
        return Interval(self.delta, self.delta_low, self.delta_high)


class Accuracy(ComparedAccuracy):
    """Accuracy of a variant, and its change and distance from the baseline."""

    flips: int | None = None
    agreement: float | None = None
    logit_error: float | None = None
    kl: float | None = None
    flipped: list[FlippedExample] | None = None


class Trial(Entry):
    """One step of a search; `in_float` counts operators."""

    smoothquant: float | None
    in_float: int
    delta: float
    delta_low: float
    delta_high: float
    flips: int
    verdict: AccuracyVerdict
    seconds: float


class Search(Entry):
    """What decided whether int8-auto is smoothed, and which of its operators stay in float."""

    in_float: list[str]
    smoothquant: float | None
    samples: int
    budget_points: float
    seconds: float
    operators: int
    trials: list[Trial]


class LatencyRow(Entry):
    """Latency at one shape: statistics over calls, None without calls or where they are too few.

    `paired_s` is on the scale that it shares with `raced` variants.
    """

    shape: Shape
    pairs: int = 0
    disturbed_pairs: int = 0
    disturbed: str | None = None
    provisional: bool = False
    stop: str = ""
    samples: int = 0
    p50_s: float | None = None
    p90_s: float | None = None
    p99_s: float | None = None
    mean_s: float | None = None
    throughput_per_s: float | None = None
    device_p50_s: float | None = None
    streams: Streams | None = None
    energy_j: float | None = None
    first_call_s: float | None = None
    speedup: Ratio | None = None
    machine_spread: float = 0.0
    threads_busy: int | None = None
    cores_used: float | None = None
    gpu: Gpu | None = None
    noise: list[str] = []
    noisy: bool = False
    raced: bool = False
    paired_s: float | None = None


class Result(Entry):
    """A variant of a model: its engine, accuracy and latency; all None where it cannot run.

    `size_bytes` to `options` are what the manifest of the engine says of its build; `options`
    depend on the engine. `engine_sha256` to `peak_rss_bytes` are what the latency record says of
    the engine as a whole.
    """

    model: str
    variant: str
    device: str
    engine: str
    precision: str
    calibration: str | None
    baseline: str | None
    host: str | None
    status: Status
    reason: str | None = None
    size_bytes: int | None = None
    build_s: float | None = None
    build_peak_rss_bytes: int | None = None
    executed: dict[str, dict[str, int]] | None = None
    options: dict[str, Any] | None = None
    engine_sha256: str | None = None
    measured: str | None = None
    threads: int | None = None
    baseline_failed: str | None = None
    load_s: float | None = None
    first_call_s: float | None = None
    peak_rss_bytes: int | None = None
    accuracy: Accuracy | None = None
    search: Search | None = None
    latency: list[LatencyRow] = []
