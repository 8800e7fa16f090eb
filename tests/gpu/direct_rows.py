"""Rows of the direct part: the statistics of a case at a shape, and its line of text."""

from functools import partial
from typing import Any

from operations import operations
from tightrope.records.latency import LatencyRecord
from tightrope.runtimes.buckets import in_words
from tightrope.summary.results import latency_entry
from tightrope.variants import parse

KEPT = ("p50_s", "mean_s", "throughput_per_s", "device_p50_s", "energy_j", "gpu", "samples")
KEPT += ("streams", "pairs", "disturbed", "noise")
Part = dict[str, Any]


def row_of(
    shape: Part, size: tuple[int, int], record: LatencyRecord, config: Part, peaks: Part
) -> Part:
    """Return the statistics of a shape, and the `share_of_peak` of the precision's products."""
    batch, sequence = size
    sizes = {"batch": batch, "sequence": sequence}
    entry: Part = {**latency_entry({**shape, **sizes}, record, accept_disturbed=True)}
    peak = peaks.get(parse(record.variant).precision)
    work = operations(config, batch, sequence, sequence)
    share = work / entry["mean_s"] / peak if peak and entry["mean_s"] else None
    kept = {name: entry[name] for name in KEPT}
    return {**sizes, **kept, "share_of_peak": share, "speedup": entry["speedup"]}


def verdicts(found: Part) -> list[str]:
    """Return the verdict of each shape of a case on its ratio to the other."""
    return [row["speedup"]["verdict"] for row in found.get("rows", ())]


def lines_of(name: str, found: Part) -> list[str]:
    """Return a line per shape of a case, or one with the reason why it failed."""
    if found["status"] != "ok":
        return [f"{name}: failed: {found['reason']}"]
    return [f"{name}, {line}" for line in map(in_line, found["rows"])]


def in_line(row: Part) -> str:
    """Return a row in words; what is not known is left out."""
    gpu, ratio = row["gpu"] or {}, row["speedup"]
    facts = [
        (row["mean_s"], lambda value: f"{value * 1e3:.3f} ms"),
        (row["device_p50_s"], lambda value: f"{value * 1e3:.3f} on the GPU"),
        (row["throughput_per_s"], lambda value: f"{value:.0f} samples/s"),
        (row["share_of_peak"], lambda value: f"{value:.1%} of the peak"),
        (row["energy_j"], lambda value: f"{value * 1e3:.3g} mJ a call"),
        (gpu.get("sm_clock_mhz"), lambda value: f"{value:.0f} MHz"),
        (gpu.get("power_w"), lambda value: f"{value:.0f} W"),
        (gpu.get("temperature_c"), lambda value: f"{value:.0f} °C"),
    ]
    facts += [
        (
            one["throughput_per_s"],
            partial("{1:.0f} samples/s on {0} stream(s)".format, one["streams"]),
        )
        for one in (row["streams"] or {"rates": ()})["rates"]
    ]
    words = [write(value) for value, write in facts if value is not None]
    if ratio and ratio["ratio"] is not None:
        interval = f"{ratio['low']:.3f} to {ratio['high']:.3f}, {ratio['verdict']}"
        words.append(f"{ratio['ratio']:.3f}x {row['against']} ({interval})")
    return f"{in_words((row['batch'], row['sequence']))}: {', '.join(words)}"
