"""Types of the entries on hosts and models in summary.json; docs/summary-json.md has the fields."""

from typing import NotRequired, TypedDict


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

    `truncation` is by split; of train it is at the `sequence` of the recipe.
    `chance` is the accuracy of always answering the most frequent label of the evaluation split,
    `thumbnails` has images with changed answers by their index in that split.
    """

    task: str
    activation: str | None
    parameters: int
    checkpoint_sha256: str
    labels: list[str] | None
    data: dict[str, str | int | None]
    truncation: dict[str, Truncation]
    baselines: dict[str, str]
    chance: float | None
    thumbnails: dict[str, str]
    sensitivity: dict[str, Sensitivity]
