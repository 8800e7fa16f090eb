"""Results of summary.json, one per variant of a model."""

import statistics
from functools import partial
from typing import Any, Literal

from tightrope.decide.result import (
    NO_SPEEDUP,
    Gpu,
    LatencyRow,
    Ratio,
    Result,
    Shape,
    StreamRate,
    Streams,
    same,
)
from tightrope.machine.host import host_key
from tightrope.machine.interference import MAX_FOREIGN_CORES, GpuState, gpu_disturbance
from tightrope.records.latency import (
    LatencyRecord,
    Reference,
    TimedShape,
    joules_per_call,
    kept_pairs,
    paired_speedup,
)
from tightrope.records.record import Record, causes
from tightrope.statistics import percentile, trimmed_mean
from tightrope.variants import parse


def gpu_entry(shape: TimedShape) -> Gpu | None:
    """Return `gpu` of a latency row, over the states after all blocks; None without a GPU.

    The power is that after the long blocks, where there are some: drivers average it over up to a
    second, so that after a short block it includes the blocks of other engines.
    """
    states = [state for state in shape.gpu or () if state]
    if not states:
        return None
    after_long = [block.gpu for block in shape.long_blocks or () if block.gpu]
    clocks = values(states, "sm_clock_mhz")
    reasons = values(states, "throttled")
    theirs = [pair.sm_clocks_mhz[1] for pair in shape.pairs if len(pair.sm_clocks_mhz) > 1]
    return Gpu(
        sm_clock_mhz=median(clocks),
        lowest_sm_clock_mhz=min(clocks, default=None),
        baseline_sm_clock_mhz=median([one for one in theirs if one is not None]),
        memory_clock_mhz=median(values(states, "memory_clock_mhz")),
        power_w=median(values(after_long or states, "power_w")),
        temperature_c=max(values(states, "temperature_c"), default=None),
        throttled=sorted({reason for one in reasons for reason in one}) if reasons else None,
        clocks_locked=clocks_locked(states),
        other_processes=max(values(states, "other_processes"), default=None),
        memory_bytes=max(values(states, "memory_bytes"), default=None),
    )


def clocks_locked(states: list[GpuState]) -> bool | None:
    """Return whether a setting held the clock of the SMs, None where NVML does not tell.

    True where the driver names the setting of application clocks as their limit all the time, False
    where the clock changed although nothing throttled it. NVML has no function that returns locked
    clocks: a constant clock may be locked, or at the highest that the GPU reaches.
    """
    limited = values(states, "application_clocks")
    if limited and all(limited):
        return True
    throttled = any(values(states, "throttled"))
    changed = len(set(values(states, "sm_clock_mhz"))) > 1
    return False if changed and not throttled else None


def values(states: list[GpuState], name: str) -> list[Any]:
    """Return the known values of a field of the states."""
    known = (getattr(state, name) for state in states)
    return [value for value in known if value is not None]


def median(numbers: list[float]) -> float | None:
    """Return the median, None without numbers."""
    return statistics.median(numbers) if numbers else None


def streams_entry(shape: TimedShape) -> Streams | None:
    """Return `streams` of a latency row, None where the shape was timed on no number of them.

    The blocks do not count in which the GPU was slowed down or shared. The estimate and its
    interval are those of `trimmed_mean`; the interval is None with fewer than two blocks.
    """
    rates = []
    for one in shape.streams or ():
        blocks = zip(one.calls, one.seconds, one.gpu, strict=True)
        kept = [(calls, seconds) for calls, seconds, gpu in blocks if gpu_disturbance(gpu) is None]
        values = [shape.batch * calls / seconds for calls, seconds in kept]
        value, *ends = trimmed_mean(values) if values else (None, None, None)
        low, high = ends if len(values) > 1 else (None, None)
        reason = one.reason
        if not values and reason is None:
            reason = "the GPU was slowed down or shared in each block"
        rates.append(StreamRate(one.streams, value, low, high, len(values), reason))
    if not rates:
        return None
    known = {one.streams: one.throughput_per_s for one in rates if one.throughput_per_s is not None}
    return Streams(rates, best=max(known, key=lambda count: known[count], default=None))


def not_planned_entry(
    model: str, variant: str, reason: str, status: Literal["failed", "unavailable"]
) -> Result:
    """Return an entry of `results` for a variant that was not built.

    It cannot run on this machine (`unavailable`), or its model lacks data or checkpoint (`failed`).
    """
    parts, host = parts_of(variant), parse(variant).host
    return Result(model, **parts, baseline=None, host=host, status=status, reason=reason)


def parts_of(variant: str) -> dict[str, Any]:
    """Return the name of a variant and its parts, as a result has them."""
    parts = same(parse(variant), "device", "engine", "precision", "calibration")
    return {"variant": variant, **parts}


def latency_entry(
    record: LatencyRecord, place: int, spread: float = 0.0, accept_disturbed: bool = False
) -> LatencyRow:
    """Return the latency statistics of the shape with index `place`.

    `speedup` is None for the baseline and without one; for `spread` see `MachineSpeed`. Only
    undisturbed pairs of blocks count. With too few, `disturbed` gives the reason and statistics are
    None; with `accept_disturbed` all count, the row is `provisional`.
    """
    shape = record.shapes[place]
    why = partial(why_disturbed, shape, record.busiest)
    kept = kept_pairs(record, place, why, accept=accept_disturbed)
    samples = [sample for index in kept.counted for sample in shape.blocks_s[index]]
    mean, device = statistics.fmean(samples) if samples else None, shape.device_s
    faster = None if shape.baseline_blocks_s is None else NO_SPEEDUP
    if kept.counted and (found := paired_speedup(record, place, kept.counted, spread)):
        faster = Ratio.of(found)
    reasons = why_noisy(shape, record.reference)
    return LatencyRow(
        shape=Shape(**shape.sizes),
        pairs=len(kept.calls),
        disturbed_pairs=kept.disturbed_calls,
        disturbed=kept.disturbed,
        provisional=kept.provisional,
        **same(shape, "stop", "first_call_s", "threads_busy", "cores_used"),
        samples=len(samples),
        p50_s=percentile(samples, 50),
        p90_s=percentile(samples, 90),
        p99_s=percentile(samples, 99),
        mean_s=mean,
        throughput_per_s=shape.batch / mean if mean else None,
        device_p50_s=percentile(device, 50) if device and samples else None,
        streams=streams_entry(shape) if samples else None,
        energy_j=joules_per_call(shape, kept.counted),
        speedup=faster,
        machine_spread=spread,
        gpu=gpu_entry(shape),
        noise=reasons,
        noisy=bool(reasons),
    )


# share of a core that the idle engine of a pair may use during a block
IDLE_SHARE = 0.02
DRIFT = 0.10


def why_disturbed(shape: TimedShape, busiest: dict[str, float], kept: int, fewest: int) -> str:
    """Explain why a shape with only `kept` undisturbed pairs of blocks has no latency."""
    return (
        f"only {kept} of {len(shape.pairs)} pairs of blocks were undisturbed, {fewest} are needed: "
        f"{causes(shape.pairs, shape.foreign_cores, busiest)}"
    )


def why_noisy(shape: TimedShape, reference: Reference | None) -> list[str]:
    """Explain why the latencies of a shape are noisy; empty if they are not."""
    found = []
    known = [cores for cores in shape.foreign_cores if cores is not None]
    if known and (foreign := statistics.fmean(known)) > MAX_FOREIGN_CORES:
        found.append(f"other programs or the hypervisor used {foreign:.1f} cores of its processors")
    if shape.idle_share > IDLE_SHARE:
        found.append(f"the engine that was not timed used {100 * shape.idle_share:.0f} % of a core")
    if reference is not None:  # the fixed workload before and after
        both = (reference.before, reference.after)
        before, after = (statistics.median(one.rounds_s) for one in both)
        change, word = abs(after / before - 1), "slower" if after > before else "faster"
        if change > DRIFT:
            share = f"{100 * change:.0f} %"
            found.append(f"the machine was {share} {word} after the measurement than before")
    return found


def measured_entry(record: Record) -> dict[str, Any]:
    """Return the fields of `Measured` of a record."""
    names = ("model", "variant", "status", "reason", "measured")
    return {**same(record, *names), "host": host_key(record.host)}
