"""From the records of one variant to its entry in the summary: statistics happen here."""

import statistics
from collections import Counter
from typing import Any

from tightrope import noise
from tightrope.host import numerics_fingerprint
from tightrope.records import AccuracyRecord, LatencyRecord
from tightrope.statistics import (
    accuracy_verdict,
    mcnemar_p_value,
    paired_difference,
    percentile,
    share,
    speed_verdict,
    speedup,
)
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
) -> Entry:
    """One of `results`; `rival` names its baseline, whose accuracy record is `baseline`."""
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
        "accuracy": accuracy_entry(accuracy, baseline, budget),
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


def accuracy_entry(
    record: AccuracyRecord, baseline: AccuracyRecord | None, budget: float
) -> Entry | None:
    """Accuracy, and its change against the baseline on the same examples.

    None where nothing was predicted. Without a baseline's predictions on the same split the
    change is None and the verdict `undecided`.
    """
    if not record.predictions or record.labels is None:
        return None
    right = hits(record)
    top1 = share(sum(right), len(right))
    entry = {
        "top1": top1.value,
        "low": top1.low,
        "high": top1.high,
        "samples": len(right),
        "verdict": "undecided",
        **dict.fromkeys(["delta", "delta_low", "delta_high", "p_value", "flips", "agreement"]),
    }
    if baseline is None or not comparable(record, baseline):
        return entry
    # a slow engine is judged on the first examples only
    pairs = list(zip(right, hits(baseline), strict=False))
    changes, count = Counter(pairs), len(pairs)
    gained, lost = changes[True, False], changes[False, True]
    change = paired_difference(gained, lost, count)
    if baseline.variant == record.variant:
        change = change._replace(low=0.0, high=0.0)
    both = zip(record.predictions, baseline.predictions, strict=False)
    flips = sum(ours != theirs for ours, theirs in both)
    return {
        **entry,
        "delta": change.value,
        "delta_low": change.low,
        "delta_high": change.high,
        "p_value": mcnemar_p_value(gained, lost),
        "flips": flips,
        "agreement": 1 - flips / count,
        "verdict": accuracy_verdict(change, budget),
    }


def hits(record: AccuracyRecord) -> list[bool]:
    """For each prediction whether it is the label."""
    return [
        ours == label for ours, label in zip(record.predictions, record.labels or (), strict=True)
    ]


def comparable(record: AccuracyRecord, baseline: AccuracyRecord) -> bool:
    """Whether both judged the same examples, on machines that compute alike."""
    places = {numerics_fingerprint(one.host) for one in (record, baseline)}
    same_examples = baseline.data_sha256 == record.data_sha256
    return bool(baseline.predictions) and same_examples and len(places) == 1
