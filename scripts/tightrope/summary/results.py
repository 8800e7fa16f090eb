"""Result entries of summary.json: statistics over the records of a variant."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.machine.interference import fewest_pairs, undisturbed
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.energy import joules_per_call
from tightrope.records.latency import LatencyRecord
from tightrope.records.machine_speed import MachineSpeed, drift_std
from tightrope.statistics import percentile, speedup
from tightrope.summary import noise
from tightrope.summary.accuracy import Split, accuracy_entry
from tightrope.summary.gpu import gpu_entry
from tightrope.summary.logits import ReferenceLogits
from tightrope.summary.ratios import ratio_entry
from tightrope.summary.result_types import (
    BuildFields,
    LatencyFields,
    LatencyRow,
    MeasuredFields,
    Ratio,
    Result,
    Shape,
    Times,
    VariantFields,
)
from tightrope.summary.streams import streams_entry
from tightrope.variants import Variant, parse

# verdict in place of a speed verdict: other load left no measurement
DISTURBED: Literal["disturbed"] = "disturbed"
NO_SPEEDUP: Ratio = {"ratio": None, "low": None, "high": None, "verdict": DISTURBED}
NOT_BUILT: BuildFields = {
    "size_bytes": None,
    "build_s": None,
    "build_peak_rss_bytes": None,
    "executed": None,
    "options": None,
}
NOT_MEASURED: MeasuredFields = {
    "engine_sha256": None,
    "measured": None,
    "threads": None,
    "baseline_failed": None,
    "load_s": None,
    "first_call_s": None,
    "peak_rss_bytes": None,
}


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
    return {
        "model": latency.model,
        **variant_fields(parse(latency.variant)),
        "baseline": baseline_variant,
        "host": host,
        "status": failed.status if failed else "ok",
        "reason": failed.reason if failed else None,
        **build_fields(engine),
        **measured_fields(latency),
        "accuracy": accuracy_entry(accuracy, baseline, budget, split, logits),
        "audit": None,
        "search": None,
        "latency": latency_rows(latency, machine, accept_disturbed),
    }


def latency_rows(
    latency: LatencyRecord, machine: MachineSpeed, accept_disturbed: bool
) -> list[LatencyRow]:
    """Return a row per shape, as if the variant had not raced."""
    rows: list[LatencyRow] = []
    for place, shape in enumerate(latency.shapes):
        spread = machine.spread(latency, place)
        kept = latency.undisturbed_pairs[place]
        row = latency_entry(shape, latency, spread, kept=kept, accept_disturbed=accept_disturbed)
        rows.append({**row, "raced": False, "paired_s": None})
    return rows


def build_fields(engine: EngineManifest) -> BuildFields:
    """Return the fields of a result that come from the manifest of its engine."""
    return {
        "size_bytes": sum(file["size_bytes"] for file in engine["files"].values()),
        "build_s": engine["build_s"],
        "build_peak_rss_bytes": engine.get("build_peak_rss_bytes"),
        "executed": engine.get("executed"),
        "options": engine.get("options"),
    }


def measured_fields(latency: LatencyRecord) -> MeasuredFields:
    """Return the fields of a result that come from its latency record."""
    return {
        "engine_sha256": latency.engine_sha256,
        "measured": latency.measured,
        "threads": latency.threads,
        "baseline_failed": latency.baseline_failed,
        "load_s": latency.load_s,
        "first_call_s": latency.first_call_s,
        "peak_rss_bytes": latency.peak_rss_bytes,
    }


def not_planned_entry(
    model: str, variant: str, reason: str, status: Literal["failed", "unavailable"]
) -> Result:
    """Return an entry of `results` for a variant that was not built.

    It cannot run on this machine (`unavailable`), or its model lacks data or checkpoint (`failed`).
    """
    return {
        "model": model,
        **variant_fields(parse(variant)),
        "baseline": None,
        "host": parse(variant).host,
        "status": status,
        "reason": reason,
        **NOT_BUILT,
        **NOT_MEASURED,
        "accuracy": None,
        "audit": None,
        "search": None,
        "latency": [],
    }


def variant_fields(variant: Variant) -> VariantFields:
    """Return the name of a variant and its parts."""
    return {
        "variant": str(variant),
        "device": variant.device,
        "engine": variant.engine,
        "precision": variant.precision,
        "calibration": variant.calibration,
    }


def shape_of(row: Mapping[str, Any]) -> Shape:
    """Return the sizes that identify the shape of a row."""
    size: Shape = {"batch": row["batch"]}
    for name in ("sequence", "tokens", "height", "width"):
        if name in row:
            size[name] = row[name]
    return size


def latency_entry(
    shape: dict[str, Any],
    record: LatencyRecord,
    spread: float = 0.0,
    *,
    kept: Sequence[int] | None = None,
    accept_disturbed: bool = False,
) -> LatencyFields:
    """Return the latency statistics of one shape.

    `speedup` is None for the baseline and without one; for `spread` see `MachineSpeed`. Only
    undisturbed pairs of blocks count, `kept` where they are known. With too few, `disturbed` gives
    the reason and statistics are None; with `accept_disturbed` all count, the row is `provisional`.
    """
    kept = undisturbed(shape) if kept is None else kept
    disturbed_pairs = len(shape["pairs"]) - len(kept)
    fewest = fewest_pairs(len(shape["pairs"]), record.plan)
    reasons, disturbed = noise.reasons(shape, record.reference), None
    if len(kept) < fewest:
        disturbed = noise.why_disturbed(shape, len(kept), fewest, record.busiest)
    numbers = disturbed is None or accept_disturbed
    if disturbed and accept_disturbed:
        kept = list(range(len(shape["pairs"])))
    return {
        **shape_of(shape),
        "pairs": len(kept),
        "disturbed_pairs": disturbed_pairs,
        "disturbed": disturbed,
        "provisional": bool(disturbed and accept_disturbed),
        "stop": shape["stop"],
        **times(shape, kept if numbers else []),
        "first_call_s": shape["first_call_s"],
        "speedup": speedup_entry(shape, kept if numbers else [], record.plan, spread),
        "machine_spread": spread,
        "threads_busy": shape["threads_busy"],
        "cores_used": shape["cores_used"],
        "gpu": gpu_entry(shape),
        "noise": reasons,
        "noisy": bool(reasons),
    }


def times(shape: dict[str, Any], kept: Sequence[int]) -> Times:
    """Return statistics over the calls in these blocks, all None without blocks."""
    samples = [sample for index in kept for sample in shape["blocks_s"][index]]
    mean = statistics.fmean(samples) if samples else None
    device = shape.get("device_s")
    return {
        "samples": len(samples),
        "p50_s": percentile(samples, 50),
        "p90_s": percentile(samples, 90),
        "p99_s": percentile(samples, 99),
        "mean_s": mean,
        "throughput_per_s": shape["batch"] / mean if mean else None,
        "device_p50_s": percentile(device, 50) if device and samples else None,
        "streams": streams_entry(shape) if samples else None,
        "energy_j": joules_per_call(shape, kept),
    }


def speedup_entry(
    shape: dict[str, Any], kept: Sequence[int], plan: Mapping[str, Any], spread: float
) -> Ratio | None:
    """Return the speed-up over these pairs, None without a baseline, `disturbed` without pairs."""
    if shape["baseline_blocks_s"] is None:
        return None
    if not kept:
        return NO_SPEEDUP
    own, theirs = (
        [shape[name][index] for index in kept] for name in ("blocks_s", "baseline_blocks_s")
    )
    loads = plan["loads"]
    return ratio_entry(speedup(own, theirs, loads=loads, unsteady=drift_std(spread, loads)))
