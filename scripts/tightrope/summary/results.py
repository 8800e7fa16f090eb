"""Results of summary.json, one per variant of a model."""

import math
import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.machine.interference import GpuState, gpu_disturbance
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.latency import (
    LatencyRecord,
    MachineSpeed,
    StreamBlocks,
    TimedShape,
    drift_std,
    joules_per_call,
    kept_pairs,
)
from tightrope.statistics import percentile, speedup, trimmed_mean
from tightrope.summary.accuracy import ReferenceLogits, Split, accuracy_entry
from tightrope.summary.measured import why_disturbed, why_noisy
from tightrope.summary.result_types import (
    Gpu,
    LatencyRow,
    Ratio,
    Result,
    Shape,
    StreamRate,
    Streams,
)
from tightrope.variants import parse

# verdict in place of a speed verdict: other load left no measurement
DISTURBED: Literal["disturbed"] = "disturbed"
NO_SPEEDUP = Ratio(verdict=DISTURBED)
# fields of a result that are those of the latency record
MEASURED = (
    *("engine_sha256", "measured", "threads", "baseline_failed"),
    *("load_s", "first_call_s", "peak_rss_bytes"),
)


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
    """Return `streams` of a latency row, None where the shape was timed on no number of them."""
    rates = [rate(one, shape.batch) for one in shape.streams or ()]
    if not rates:
        return None
    known = {one.streams: one.throughput_per_s for one in rates if one.throughput_per_s is not None}
    return Streams(rates, best=max(known, key=lambda count: known[count], default=None))


def rate(measured: StreamBlocks, batch: int) -> StreamRate:
    """Return the samples per second on a number of streams, over the blocks that count.

    Those do not in which the GPU was slowed down or shared. The estimate and its interval are those
    of `trimmed_mean`; the interval is None with fewer than two blocks.
    """
    values = [
        batch * calls / seconds
        for calls, seconds, state in zip(
            measured.calls, measured.seconds, measured.gpu, strict=True
        )
        if gpu_disturbance(state) is None
    ]
    middle = trimmed_mean(values) if values else None
    bounded = middle is not None and math.isfinite(middle.low)
    reason = measured.reason
    if middle is None and reason is None:
        reason = "the GPU was slowed down or shared in each block"
    return StreamRate(
        streams=measured.streams,
        throughput_per_s=middle.value if middle else None,
        low=middle.low if middle and bounded else None,
        high=middle.high if middle and bounded else None,
        blocks=len(values),
        reason=reason,
    )


def result_entry(
    engine: EngineManifest,
    latency: LatencyRecord,
    accuracy: AccuracyRecord,
    baseline: AccuracyRecord | None,
    *,
    host: str,
    budget: float,
    baseline_variant: str,
    split: Split,
    machine: MachineSpeed,
    logits: ReferenceLogits | None = None,
    accept_disturbed: bool = False,
) -> Result:
    """Return an entry of `results`, without what later steps of `summarize` add.

    `baseline` is the accuracy record of `baseline_variant`. Both variants were evaluated on
    `split`; `machine` gives the machine's speed variation over all latency records, `logits` are
    those of `baseline`. For `accept_disturbed` see `latency_entry`.
    """
    failed = next((record for record in (latency, accuracy) if record.status != "ok"), None)
    return Result(
        model=latency.model,
        **parts_of(latency.variant),
        baseline=baseline_variant,
        host=host,
        status=failed.status if failed else "ok",
        reason=failed.reason if failed else None,
        size_bytes=sum(file["size_bytes"] for file in engine["files"].values()),
        build_s=engine["build_s"],
        build_peak_rss_bytes=engine.get("build_peak_rss_bytes"),
        executed=engine.get("executed"),
        options=engine.get("options"),
        **{name: getattr(latency, name) for name in MEASURED},
        accuracy=accuracy_entry(accuracy, baseline, budget, split, logits),
        latency=latency_rows(latency, machine, accept_disturbed),
    )


def latency_rows(
    latency: LatencyRecord, machine: MachineSpeed, accept_disturbed: bool
) -> list[LatencyRow]:
    """Return a row per shape, as if the variant had not raced."""
    return [
        latency_entry(
            latency, place, machine.spread(latency, place), accept_disturbed=accept_disturbed
        )
        for place in range(len(latency.shapes))
    ]


def not_planned_entry(
    model: str, variant: str, reason: str, status: Literal["failed", "unavailable"]
) -> Result:
    """Return an entry of `results` for a variant that was not built.

    It cannot run on this machine (`unavailable`), or its model lacks data or checkpoint (`failed`).
    """
    host, parts = parse(variant).host, parts_of(variant)
    return Result(model, **parts, baseline=None, host=host, status=status, reason=reason)


def parts_of(variant: str) -> dict[str, Any]:
    """Return the name of a variant and its parts, as a result has them."""
    parsed = parse(variant)
    return {
        "variant": str(parsed),
        **{name: getattr(parsed, name) for name in ("device", "engine", "precision")},
        "calibration": parsed.calibration,
    }


def latency_entry(
    record: LatencyRecord, place: int, spread: float = 0.0, *, accept_disturbed: bool = False
) -> LatencyRow:
    """Return the latency statistics of the shape with index `place`.

    `speedup` is None for the baseline and without one; for `spread` see `MachineSpeed`. Only
    undisturbed pairs of blocks count. With too few, `disturbed` gives the reason and statistics are
    None; with `accept_disturbed` all count, the row is `provisional`.
    """
    shape = record.shapes[place]
    why = partial(why_disturbed, shape, record.busiest)
    kept = kept_pairs(record, place, why, accept=accept_disturbed)
    calls = [] if kept.disturbed and not kept.provisional else kept.calls
    reasons = why_noisy(shape, record.reference)
    return LatencyRow(
        shape=Shape(**shape.sizes),
        pairs=len(kept.calls),
        disturbed_pairs=kept.disturbed_calls,
        disturbed=kept.disturbed,
        provisional=kept.provisional,
        stop=shape.stop,
        **times(shape, calls),
        first_call_s=shape.first_call_s,
        speedup=speedup_entry(shape, calls, record.plan, spread),
        machine_spread=spread,
        threads_busy=shape.threads_busy,
        cores_used=shape.cores_used,
        gpu=gpu_entry(shape),
        noise=reasons,
        noisy=bool(reasons),
    )


def times(shape: TimedShape, kept: Sequence[int]) -> dict[str, Any]:
    """Return statistics over the calls in these blocks, None without blocks."""
    samples = [sample for index in kept for sample in shape.blocks_s[index]]
    mean = statistics.fmean(samples) if samples else None
    device = shape.device_s
    return {
        "samples": len(samples),
        "p50_s": percentile(samples, 50),
        "p90_s": percentile(samples, 90),
        "p99_s": percentile(samples, 99),
        "mean_s": mean,
        "throughput_per_s": shape.batch / mean if mean else None,
        "device_p50_s": percentile(device, 50) if device and samples else None,
        "streams": streams_entry(shape) if samples else None,
        "energy_j": joules_per_call(shape, kept),
    }


def speedup_entry(
    shape: TimedShape, kept: Sequence[int], plan: Mapping[str, Any], spread: float
) -> Ratio | None:
    """Return the speed-up over these pairs, None without a baseline, `disturbed` without pairs."""
    if shape.baseline_blocks_s is None:
        return None
    if not kept:
        return NO_SPEEDUP
    own = [shape.blocks_s[index] for index in kept]
    theirs = [shape.baseline_blocks_s[index] for index in kept]
    loads = plan["loads"]
    return Ratio.of(speedup(own, theirs, loads=loads, unsteady=drift_std(spread, loads)))
