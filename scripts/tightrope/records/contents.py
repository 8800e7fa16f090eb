"""Types of what the lists in records hold; a record docstring says what each field means.

No field is required: a record holds what its job got to know before it ended.
"""

from typing import TypedDict


class Counters(TypedDict, total=False):
    """What the kernel counted of a pair or block, see `interference.of_pair`."""

    waited: float | None
    stolen: float
    preempted: float
    window: int
    throttled: list[str]
    other_processes: int | None


class GpuState(TypedDict, total=False):
    """State of a GPU directly after a block, see `gpu_state.GpuState.read`."""

    sm_clock_mhz: int | None
    memory_clock_mhz: int | None
    temperature_c: int | None
    power_w: float | None
    throttled: list[str] | None
    application_clocks: bool | None
    other_processes: int | None
    memory_bytes: int | None


class LongBlock(TypedDict, total=False):
    """Calls for as long as a GPU's energy counter needs, see `TimedEngine.long_block`."""

    energy_j: float | None
    calls: int
    gpu: GpuState | None


class StreamBlocks(TypedDict, total=False):
    """Calls on several streams of a GPU, see `measure.streams`: a value per block in each list."""

    streams: int
    reason: str | None
    calls: list[int]
    seconds: list[float]
    gpu: list[GpuState | None]


class WarmUp(TypedDict, total=False):
    """The warm-up of one load."""

    calls: int
    seconds: float
    stable: bool | None


class Sized(TypedDict, total=False):
    """A shape: `sequence` for texts, `height` and `width` for images.

    `tokens` is how many of the sequence are no padding; without it all of them.
    """

    batch: int
    sequence: int
    tokens: int
    height: int
    width: int


class TimedShape(Sized, total=False):
    """An entry of `shapes` of a LatencyRecord."""

    first_call_s: float | None
    blocks_s: list[list[float]]
    baseline_blocks_s: list[list[float]] | None
    device_s: list[float] | None
    energy_j: list[float | None] | None
    gpu: list[GpuState | None] | None
    long_blocks: list[LongBlock] | None
    streams: list[StreamBlocks] | None
    pairs: list[Counters]
    foreign_cores: list[float | None]
    warmups: list[WarmUp]
    seconds: float
    stop: str
    threads_busy: int | None
    cores_used: float | None
    idle_share: float | None


class Elimination(TypedDict):
    """When a variant left a race, and the significantly faster one."""

    round: int
    by: str


class RacedShape(Sized, total=False):
    """An entry of `shapes` of a heat: per variant, a list with an entry or None per round."""

    contenders: list[str]
    pairs: list[list[str]]
    blocks_s: dict[str, list[list[float] | None]]
    facts: dict[str, list[Counters | None]]
    loads: list[int]
    foreign_cores: list[float | None]
    out: dict[str, Elimination]
    stop: str | None
    seconds: float


class Heat(TypedDict, total=False):
    """An entry of `heats` of a RaceRecord: finalists that fit in memory together."""

    shapes: list[RacedShape]


class Rate(TypedDict, total=False):
    """A test of LoadGen at one rate of the Server scenario."""

    target_per_s: float
    issued_per_s: float
    duration_s: float
    p99_s: float | None
    queries: int
    late: int
    valid: bool
    foreign_cores: float | None


class TrafficTest(TypedDict, total=False):
    """An entry of `tests` of a TrafficRecord."""

    name: str
    scenario: str
    round: int
    duration_s: float
    valid: bool
    queries: int
    p50_s: float | None
    p90_s: float | None
    p99_s: float | None
    samples: int
    samples_per_s: float | None
    batches: int
    tokens: int
    padded_tokens: int
    rates: list[Rate]
    highest_per_s: float | None
    issued_per_s: float | None
    reason: str | None
    foreign_cores: float | None


class Epoch(TypedDict, total=False):
    """An epoch of a training."""

    seconds: float
    samples: int
    samples_per_s: float
    steps: int
    foreign_cores: float | None
    loss: float
    accuracy: float | None
    accuracy_s: float | None


class SeedRun(TypedDict, total=False):
    """An entry of `runs` of a TrainingRecord."""

    seed: int
    amp: str
    tf32: bool
    steps: int
    samples: int
    held_out_samples: int
    micro_batches: int
    compile_s: float | None
    peak_rss_bytes: int
    peak_device_bytes: int | None
    epochs: list[Epoch]


class Operator(TypedDict):
    """One operator of a call, see `runtimes.operator_times.OperatorTime`."""

    name: str
    kind: str
    group: str
    type: str
    seconds: float
    operations: float
    bytes: float


class Group(TypedDict):
    """The operators of one group in a call, added up; `types` has their seconds by type."""

    seconds: float
    operations: float
    bytes: float
    count: int
    types: dict[str, float]


class ProfiledShape(Sized, total=False):
    """Where the time of a call of one shape goes, see `ProfileRecord`."""

    call_s: float
    padding: float
    operators: list[Operator]
    groups: dict[str, Group]
    bound: str
    shares: dict[str, float]
    outside_s: float
    profiler_factor: float
