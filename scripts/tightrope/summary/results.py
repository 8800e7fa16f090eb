"""Result entries of summary.json: statistics over the records of a variant."""

import statistics
from typing import Any

from tightrope.machine.interference import fewest_pairs, undisturbed
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.latency import LatencyRecord
from tightrope.records.machine_speed import MachineSpeed, drift_std
from tightrope.statistics import Interval, percentile, speed_verdict, speedup
from tightrope.summary import noise
from tightrope.summary.accuracy import Split, accuracy_entry
from tightrope.variants import Variant, parse

Entry = dict[str, Any]
# verdict in place of a speed verdict: other load left no measurement
DISTURBED = "disturbed"
# fields of a result that come from the manifest of its engine, and from its latency record
BUILD = ("size_bytes", "build_s", "build_peak_rss_bytes", "executed", "options")
MEASURED = (
    *("engine_sha256", "measured", "threads", "baseline_failed", "load_s", "first_call_s"),
    "peak_rss_bytes",
)


def result_entry(
    engine: dict[str, Any],
    latency: LatencyRecord,
    accuracy: AccuracyRecord,
    baseline: AccuracyRecord | None,
    *,
    host: str,
    budget: float,
    rival: str,
    split: Split,
    machine: MachineSpeed,
    accept_disturbed: bool = False,
) -> Entry:
    """Return an entry of `results`.

    `rival` names the baseline variant, `baseline` is its accuracy record. Both were evaluated on
    `split`; `machine` gives the machine's speed variation over all latency records. For
    `accept_disturbed` see `latency_entry`.
    """
    failed = next((record for record in (latency, accuracy) if record.status != "ok"), None)
    return {
        **identity(latency.model, parse(latency.variant)),
        "baseline": rival,
        "host": host,
        "status": failed.status if failed else "ok",
        "reason": failed.reason if failed else None,
        **build_fields(engine),
        **{name: getattr(latency, name) for name in MEASURED},
        "accuracy": accuracy_entry(accuracy, baseline, budget, split),
        "latency": [
            latency_entry(
                shape, latency, machine.spread(latency, place), accept_disturbed=accept_disturbed
            )
            for place, shape in enumerate(latency.shapes)
        ],
    }


def build_fields(engine: dict[str, Any]) -> Entry:
    """Return the fields of a result that come from the manifest of its engine."""
    return {
        "size_bytes": sum(file["size_bytes"] for file in engine["files"].values()),
        **{name: engine.get(name) for name in BUILD[1:]},
    }


def unavailable_entry(model: str, variant: str, reason: str) -> Entry:
    """Return an entry of `results` for a variant that cannot run on this machine."""
    return {
        **identity(model, parse(variant)),
        "host": None,
        "status": "unavailable",
        "reason": reason,
        **dict.fromkeys(["baseline", *BUILD, *MEASURED, "accuracy"]),
        "latency": [],
    }


def identity(model: str, variant: Variant) -> Entry:
    """Return the fields that identify a result."""
    return {"model": model, "variant": str(variant), **variant._asdict()}


def latency_entry(
    shape: Entry, record: LatencyRecord, spread: float = 0.0, *, accept_disturbed: bool = False
) -> Entry:
    """Return the latency statistics of one shape.

    `speedup` is None for the baseline itself and without a baseline. `spread` is the machine's
    speed variation, see `MachineSpeed`. Only undisturbed pairs of blocks count. If they are too
    few, `disturbed` gives the reason and the statistics are None; with `accept_disturbed` all pairs
    count and the row is `provisional`.
    """
    kept = undisturbed(shape)
    fewest = fewest_pairs(len(shape["pairs"]), record.plan)
    disturbed = None
    if len(kept) < fewest:
        disturbed = noise.why_disturbed(shape, len(kept), fewest, record.loudest)
    numbers = disturbed is None or accept_disturbed
    if disturbed and accept_disturbed:
        kept = list(range(len(shape["pairs"])))
    size = {key: shape[key] for key in ("batch", "sequence", "height", "width") if key in shape}
    reasons = noise.reasons(shape, record.reference)
    return {
        **size,
        "pairs": len(kept),
        "disturbed_pairs": len(shape["pairs"]) - len(undisturbed(shape)),
        "disturbed": disturbed,
        "provisional": bool(disturbed and accept_disturbed),
        "stop": shape["stop"],
        **times(shape, kept if numbers else [], size["batch"]),
        "first_call_s": shape["first_call_s"],
        "speedup": speedup_entry(shape, kept if numbers else [], record.plan, spread),
        "machine_spread": spread,
        "threads_busy": shape["threads_busy"],
        "cores_used": shape["cores_used"],
        "noise": reasons,
        "noisy": bool(reasons),
    }


def times(shape: Entry, kept: list[int], batch: int) -> Entry:
    """Return latency statistics over the calls in these blocks, all None without blocks."""
    samples = [sample for index in kept for sample in shape["blocks_s"][index]]
    mean = statistics.fmean(samples) if samples else None
    device = shape.get("device_s")
    return {
        "samples": len(samples),
        **{f"p{percent}_s": percentile(samples, percent) for percent in (50, 90, 99)},
        "mean_s": mean,
        "throughput_per_s": batch / mean if mean else None,
        "device_p50_s": percentile(device, 50) if device and samples else None,
    }


def speedup_entry(shape: Entry, kept: list[int], plan: Entry, spread: float) -> Entry | None:
    """Return the speed-up over these pairs, None without a baseline, `disturbed` without pairs."""
    if shape["baseline_blocks_s"] is None:
        return None
    if not kept:
        return {**dict.fromkeys(("ratio", "low", "high")), "verdict": DISTURBED}
    own, theirs = (
        [shape[name][index] for index in kept] for name in ("blocks_s", "baseline_blocks_s")
    )
    loads = plan["loads"]
    return ratio_entry(speedup(own, theirs, loads=loads, unsteady=drift_std(spread, loads)))


def ratio_entry(ratio: Interval) -> Entry:
    """Return a ratio of times with its interval and verdict."""
    fields = {"ratio": ratio.value, "low": ratio.low, "high": ratio.high}
    return {**fields, "verdict": speed_verdict(ratio)}
