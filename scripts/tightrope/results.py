"""From the records of one variant to its entry in the summary: statistics happen here."""

import statistics
from typing import Any

from tightrope import noise
from tightrope.accuracy_results import accuracy_entry
from tightrope.flips import Split
from tightrope.records import AccuracyRecord, LatencyRecord
from tightrope.statistics import percentile, speed_verdict, speedup
from tightrope.variants import Variant, parse

Entry = dict[str, Any]


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
) -> Entry:
    """One of `results`; `rival` names its baseline, whose accuracy record is `baseline`.

    `split` is what both were judged on.
    """
    failed = next((record for record in (latency, accuracy) if record.status != "ok"), None)
    return {
        **identity(latency.model, parse(latency.variant)),
        "baseline": rival,
        "host": host,
        "status": failed.status if failed else "ok",
        "reason": failed.reason if failed else None,
        "size_bytes": sum(file["size_bytes"] for file in engine["files"].values()),
        "build_s": engine["build_s"],
        "build_peak_rss_bytes": engine.get("build_peak_rss_bytes"),
        "executed": engine.get("executed"),
        "options": engine.get("options"),
        "engine_sha256": latency.engine_sha256,
        "measured": latency.measured,
        "threads": latency.threads,
        "baseline_failed": latency.baseline_failed,
        "load_s": latency.load_s,
        "first_call_s": latency.first_call_s,
        "peak_rss_bytes": latency.peak_rss_bytes,
        "accuracy": accuracy_entry(accuracy, baseline, budget, split),
        "latency": [latency_entry(shape, latency) for shape in latency.shapes],
    }


def unavailable_entry(model: str, variant: str, reason: str) -> Entry:
    """One of `results` for a variant that has no job on this machine."""
    measured = [
        "baseline",
        "size_bytes",
        "build_s",
        "build_peak_rss_bytes",
        "executed",
        "options",
        "engine_sha256",
        "measured",
        "threads",
        "baseline_failed",
        "load_s",
        "first_call_s",
    ]
    return {
        **identity(model, parse(variant)),
        "host": None,
        "status": "unavailable",
        "reason": reason,
        **dict.fromkeys([*measured, "peak_rss_bytes", "accuracy"]),
        "latency": [],
    }


def identity(model: str, variant: Variant) -> Entry:
    """What names a result."""
    return {"model": model, "variant": str(variant), **variant._asdict()}


def latency_entry(shape: Entry, record: LatencyRecord) -> Entry:
    """Statistics of one shape; `speedup` is None for the baseline or without one."""
    fewest = fewest_pairs(shape, record.plan)
    kept = noise.quiet_pairs(shape, fewest)
    own = [shape["blocks_s"][index] for index in kept]
    samples = [sample for block in own for sample in block]
    size = {key: shape[key] for key in ("batch", "sequence", "height", "width") if key in shape}
    mean = statistics.fmean(samples)
    reasons = noise.reasons(shape, record.reference, fewest)
    entry = {
        **size,
        "samples": len(samples),
        "pairs": len(kept),
        "hit_pairs": sum(reason is not None for reason in shape["hits"]),
        "stop": shape["stop"],
        **{f"p{percent}_s": percentile(samples, percent) for percent in (50, 90, 99)},
        "mean_s": mean,
        "throughput_per_s": size["batch"] / mean,
        "device_p50_s": percentile(shape["device_s"], 50) if shape.get("device_s") else None,
        "first_call_s": shape["first_call_s"],
        "speedup": None,
        "threads_busy": shape["threads_busy"],
        "cores_used": shape["cores_used"],
        "noise": reasons,
        "noisy": bool(reasons),
    }
    if shape["baseline_blocks_s"] is not None:
        ratio = speedup(own, [shape["baseline_blocks_s"][index] for index in kept])
        entry["speedup"] = {
            "ratio": ratio.value,
            "low": ratio.low,
            "high": ratio.high,
            "verdict": speed_verdict(ratio),
        }
    return entry


def fewest_pairs(shape: Entry, plan: Entry) -> int:
    """How many pairs of blocks must have been left alone by other load, if only those count.

    More than half of those that had to be measured: a pair that was hit near the time limit, or in
    a fixed number of calls, is not measured again.
    """
    return max(2, min(plan["pairs"], len(shape["hits"])) // 2 + 1)
