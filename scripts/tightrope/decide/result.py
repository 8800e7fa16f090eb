"""What is known of a variant: its result, with its accuracy and its latency at each shape."""

from typing import Any, Literal, Self

import msgspec

from tightrope.statistics import AccuracyVerdict, Interval, SpeedVerdict, speed_verdict

Attempt = Literal["ok", "failed"]


class Entry(msgspec.Struct, forbid_unknown_fields=True):
    """An entry of summary.json; None means not known."""


class Shape(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Sizes of an input; one that it does not have is left out."""

    batch: int
    """Examples of a call."""
    sequence: int | None = None
    """Tokens of each text, padding included."""
    tokens: int | None = None
    """How many of them are no padding; only at [a padded shape](measurement.md#latency)."""
    height: int | None = None
    width: int | None = None
    """Pixels of each image."""

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes that it has, by name."""
        known = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: size for name, size in known if size is not None}

    def __lt__(self, other: "Shape") -> bool:
        """Return whether it is the smaller one, by the sizes in their order."""
        return [*self.sizes.items()] < [*other.sizes.items()]


class Reason(Entry):
    """Why something was decided so.

    The page, the terminal and the card of a bundle say it with the phrase of its code in
    `scripts/tightrope/decide/phrases.py`.
    """

    code: str
    values: dict[str, Any] = {}
    """What it is about, by name; an interval is a list of value, low and high."""

    @classmethod
    def of(cls, code: str, **values: Any) -> Self:
        """Return the reason with these values."""
        return cls(code, values)


class Ratio(Entry, kw_only=True):
    """A speed-up: the time of another over its own, with its 95 % interval."""

    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    """None if `verdict` is `disturbed`."""
    verdict: SpeedVerdict | Literal["disturbed"]
    """`faster` or `slower` where the whole interval is on that side of 1, else `tie`; `disturbed`
    where other load left no measurement."""

    @classmethod
    def of(cls, found: Interval, **more: Any) -> Self:
        """Return a ratio of times with its interval and verdict, and `more` fields of its kind."""
        value, low, high = found
        return cls(ratio=value, low=low, high=high, verdict=speed_verdict(found), **more)


def interval_of(found: Ratio | None) -> Interval | None:
    """Return the interval of a ratio of times, None if it was not measured."""
    if found is None or found.ratio is None or found.low is None or found.high is None:
        return None
    return Interval(found.ratio, found.low, found.high)


class Measured(Entry):
    """What was measured of a variant of a model."""

    model: str
    variant: str
    host: str
    """Of which variant, on which machine of `hosts`."""
    status: Attempt
    reason: str | None
    """Why it failed, else None."""
    measured: str
    """When, in UTC."""


def same(source: Any, *names: str) -> dict[str, Any]:
    """Return these attributes of a record, which are fields of an entry, by name."""
    return {name: getattr(source, name) for name in names}


class StudyEntry(Measured):
    """What a study found of a variant."""

    shape: dict[str, int]
    """The sizes that all inputs have in common."""
    threads: int
    """Per operator, as configured."""
    spent_s: float
    """Of all calls with loads."""
    words: list[str]
    """Sentences on all rows."""
    rows: list[dict[str, Any]]
    """Each study has rows of its own, see below; none if it failed."""


class FlippedExample(Entry):
    """An example whose prediction differs from the baseline's."""

    index: int
    """In the evaluation split, from 0."""
    text: str | None
    """At most 300 characters, the last one an ellipsis if it was cut, or the name of the image;
    None if the data have none, and if they were another split."""
    label: str | int
    baseline: str | int
    prediction: str | int
    """Names of classes, or their numbers if the data have no names."""
    baseline_margin: float
    margin: float
    """Highest logit less the second, of the baseline and of the variant."""


class TopOne(Entry):
    """The share of right predictions."""

    top1: float
    low: float
    high: float
    """The share, with Wilson's 95 % interval."""
    samples: int
    """How many examples were predicted."""


class ComparedAccuracy(TopOne):
    """The accuracy, and its change on the same examples."""

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
    """As in [Change](#change). None unless the other predicted the same examples on a host with the
    same `isa` and `gpu`; the verdict on a result is `undecided` then."""

    @property
    def change(self) -> Interval | None:
        """The change of accuracy with its interval, None if it was not compared."""
        if self.delta is None or self.delta_low is None or self.delta_high is None:
            return None
        return Interval(self.delta, self.delta_low, self.delta_high)


class Accuracy(ComparedAccuracy):
    """The accuracy of a variant, and its difference from the baseline, which itself has none."""

    flips: int | None = None
    agreement: float | None = None
    """How many predictions differ from the baseline's, and the share that is equal. From here on
    None where `delta` is."""
    logit_error: float | None = None
    """Root mean square of the difference of the logits over that of the baseline's logits about
    their mean in each example; None if these are all equal."""
    kl: float | None = None
    """Mean over the examples of KL(baseline || variant) of the softmax, in nats."""
    flipped: list[FlippedExample] | None = None
    """At most 200 of them, the largest margin of the baseline first."""


class Trial(Entry):
    """One step of a search."""

    smoothquant: float | None
    """Strength of SmoothQuant, None for none."""
    in_float: int
    """How many operators stayed in float."""
    delta: float
    delta_low: float
    delta_high: float
    """Change of accuracy from the model in float, a fraction with its paired 95 % interval."""
    flips: int
    """Predictions that differ from it."""
    verdict: AccuracyVerdict
    """On the change, as in [Change](#change)."""
    seconds: float
    """Of this step."""


class Search(Entry):
    """What decided whether int8-auto is smoothed, and which of its operators stay in float."""

    in_float: list[str]
    """Names of the operators that stay in float. They were chosen by the `sensitivity` of the model
    whose name ends with the variant's `calibration`."""
    smoothquant: float | None
    """Strength of SmoothQuant, None for none."""
    samples: int
    """Calibration examples."""
    budget_points: float
    """Points of accuracy that the search may lose."""
    seconds: float
    """Of the whole search."""
    operators: int
    """How many could be chosen."""
    trials: list[Trial]
    """In their order."""


# verdict in place of a speed verdict: other load left no measurement
DISTURBED: Literal["disturbed"] = "disturbed"
NO_SPEEDUP = Ratio(verdict=DISTURBED)
Status = Literal["ok", "failed", "unavailable"]


class Gpu(Entry):
    """The GPU over the states after the blocks of a shape; None where NVML does not report it."""

    sm_clock_mhz: float | None
    """The median."""
    lowest_sm_clock_mhz: float | None
    """The lowest."""
    baseline_sm_clock_mhz: float | None
    """The baseline's median in the same pairs: under a power cap the two engines may run at
    different clocks."""
    memory_clock_mhz: float | None
    power_w: float | None
    """Medians."""
    temperature_c: float | None
    """The highest."""
    throttled: list[str] | None
    """All reasons, such as `power cap` or `thermal slowdown`."""
    clocks_locked: bool | None
    """Whether a setting held the clocks; None where NVML does not tell."""
    other_processes: int | None
    """The most at a time, computing or not."""
    memory_bytes: int | None
    """The most that the timed process used."""


class StreamRate(Entry):
    """The throughput on a number of streams."""

    streams: int
    """How many."""
    throughput_per_s: float | None
    low: float | None
    high: float | None
    """Inputs per second, with the 95 % interval; None where nothing was measured."""
    blocks: int
    """How many count: those in which the GPU was neither slowed down nor shared."""
    reason: str | None
    """Why nothing was measured, else None."""


class Streams(Entry):
    """[The throughput on several streams](measurement.md#several-streams-on-a-gpu)."""

    rates: list[StreamRate]
    """One per number of streams."""
    best: int | None
    """The number with the highest throughput."""


class LatencyRow(Entry):
    """The latency of a variant at one shape."""

    shape: Shape
    """At which it was timed."""
    pairs: int = 0
    disturbed_pairs: int = 0
    """Pairs of blocks that count, and those that other load disturbed."""
    disturbed: str | None = None
    """Why too few pairs were undisturbed, else None; then all times and statistics are None."""
    provisional: bool = False
    """Whether they are given anyway (`latency.accept_disturbed`)."""
    stop: str = ""
    """Why measuring ended: `width` (the interval is as narrow as configured), `time limit` (it is
    not, or other load left too few pairs), `minimum` (measured without a baseline, so there is no
    interval), `calls` (a fixed number of calls), `disturbed` (before the minimum of pairs: other
    load slowed it down, and most pairs would not count)."""
    samples: int = 0
    """Calls in the pairs that count."""
    p50_s: float | None = None
    p90_s: float | None = None
    p99_s: float | None = None
    mean_s: float | None = None
    """Over the calls of the row's own job; a percentile is None where the samples are too few."""
    throughput_per_s: float | None = None
    """Inputs per second: batch / `paired_s`."""
    device_p50_s: float | None = None
    """The median of calls on inputs that are already on the GPU, logits left there; `p50_s` less it
    is transfers and waiting. None on the CPU."""
    streams: Streams | None = None
    """None unless `cuda.streams` asks for it and the row has times."""
    energy_j: float | None = None
    """Per call, of all packages of processors or of the whole GPU ([what they
    include](measurement.md#energy-and-the-gpus-clocks)); None if the machine does not show it."""
    first_call_s: float | None = None
    """Of the first load."""
    speedup: Ratio | None = None
    """Time of the baseline over its own; None for the baseline and without one."""
    machine_spread: float = 0.0
    """Standard deviation of the logarithm of the baseline's time at this shape over the jobs of the
    run that measured it: how much the machine changed its speed. Three tenths of it are in the
    interval of `speedup`."""
    threads_busy: int | None = None
    """Threads that really worked."""
    cores_used: float | None = None
    """CPU time over wall time."""
    gpu: Gpu | None = None
    """None on a CPU and where NVML does not answer."""
    noise: list[str] = []
    noisy: bool = False
    """Whether it is noisy, and the reasons in words."""
    raced: bool = False
    """Whether `speedup` follows from the race."""
    paired_s: float | None = None
    """[The latency](measurement.md#the-race) by which variants are compared: the baseline's time
    over the speed-up; without a speed-up the row's own median. None if that is disturbed."""


class Result(Entry):
    """A variant of a model; an `unavailable` one has None from `size_bytes` on, and no latency."""

    model: str
    variant: str
    device: str
    engine: str
    precision: str
    calibration: str | None
    """Of which model, its name, and the parts of that; `calibration` is None without one."""
    baseline: str | None
    """The variant that it is compared with."""
    host: str | None
    """The key in `hosts` of the machine that measured it; None if nothing was measured, unless the
    variant's name has a host."""
    status: Status
    reason: str | None = None
    """Whether it could be measured, `unavailable` if it cannot run here; why not, else None."""
    size_bytes: int | None = None
    """Of the engine's files."""
    build_s: float | None = None
    """Of building the engine."""
    build_peak_rss_bytes: int | None = None
    """Highest resident memory of the process that built it or of one of its compilers; None if the
    build failed."""
    executed: dict[str, dict[str, int]] | None = None
    """For each class of operators, how many run in which precision."""
    options: dict[str, Any] | None = None
    """The engine's section of the configuration with which it was built; for OpenVINO and TVM with
    its `buckets`."""
    engine_sha256: str | None = None
    """Of the engine.json that was measured."""
    measured: str | None = None
    """When, in UTC."""
    threads: int | None = None
    """Per operator, as configured."""
    baseline_failed: str | None = None
    """Why the baseline could not be measured, else None; then there is no `speedup`."""
    load_s: float | None = None
    """Of loading the engine."""
    first_call_s: float | None = None
    """Of the first shape."""
    peak_rss_bytes: int | None = None
    """Highest resident memory of the timed process."""
    accuracy: Accuracy | None = None
    """None if nothing was predicted or the data have no labels."""
    search: Search | None = None
    """None for all but `int8-auto`, and if the search failed."""
    latency: list[LatencyRow] = []
    """A row per shape."""

    def at(self, shape: Shape) -> LatencyRow | None:
        """Return its latency at a shape, None where it was not measured."""
        return next((row for row in self.latency if row.shape == shape), None)
