"""bundle.json: what the programs of a bundle know of it, with its latencies as intervals."""

import math
import platform
import statistics
from pathlib import Path
from typing import Any

from tightrope.bundle.subject import Subject
from tightrope.inputs.image_settings import load_settings
from tightrope.inputs.texts import cut_side
from tightrope.measure.answers import largest_batch
from tightrope.records.latency import LOAD_ORDER_STD, LatencyRecord, TimedShape
from tightrope.report.style.numbers import shape_label, shape_of
from tightrope.signature import IMAGE
from tightrope.statistics import LEVEL
from tightrope.summary.result_types import LatencyRow

SCHEMA = 1
# file suffixes of code that was compiled for the instructions of the processor at hand
COMPILED = (".so", ".pt2", ".blob")
# standard deviations of a normal distribution within which 95 % lie
WIDTH = statistics.NormalDist().inv_cdf(1 - LEVEL / 2)


def facts_of(subject: Subject, *, longest: int) -> dict[str, Any]:
    """Return bundle.json; `longest` is at how many tokens a text is cut.

    `requires` are the instruction sets without which the engine would crash, `latency` what
    `stated` returns, `workload_s` the seconds of a fixed workload on `processors` processors.
    """
    latency, variant = subject.latency, subject.variant
    images = subject.checkpoint["task"] == IMAGE
    return {
        "schema": SCHEMA,
        "model": subject.model,
        "variant": str(variant),
        "device": variant.device,
        "engine": variant.engine,
        "precision": variant.precision,
        "task": subject.checkpoint["task"],
        "labels": subject.checkpoint["labels"],
        "threads": latency.threads,
        "batch": largest_batch(subject.engine["options"]),
        "longest": None if images else longest,
        "cut": None if images else cut_side(subject.paths.artifacts.checkpoint.parent),
        "image": image_settings(subject.paths.artifacts.checkpoint.parent) if images else None,
        "machine": platform.machine(),
        "requires": required(subject),
        "host": latency.host,
        "measured": latency.measured,
        "latency": stated(latency, subject.result["latency"]),
        "processors": len(latency.processors),
        "workload_s": workload_s(latency),
    }


def required(subject: Subject) -> list[str]:
    """Return the instruction sets that a compiled engine may use; none for one that asks first."""
    compiled = any(name.endswith(COMPILED) for name in subject.engine["files"])
    return list(subject.latency.host["isa"]) if compiled else []


def image_settings(checkpoint: Path) -> dict[str, Any]:
    """Return how an image becomes pixel values, see `ImageSettings`."""
    settings = load_settings(checkpoint)
    names = ("height", "width", "resize", "crop", "resample", "rescale", "mean", "std")
    return {name: getattr(settings, name) for name in names}


def stated(record: LatencyRecord, rows: list[LatencyRow]) -> list[dict[str, Any]]:
    """Return the latency at each shape that has one in the summary, whose `rows` are given.

    The interval holds 95 % of further measurements on the same machine, if the logs of their times
    are normally distributed: their standard deviation comes from the blocks of this measurement,
    from the changes of machine speed between the jobs of the run (`machine_spread` of summary.json)
    and from loading the engine anew.
    """
    by_shape = {shape_of(row): row for row in rows}
    found = (interval(shape, by_shape[shape_of(shape.sizes)]) for shape in record.shapes)
    return [one for one in found if one is not None]


def interval(shape: TimedShape, row: LatencyRow) -> dict[str, Any] | None:
    """Return the latency at one shape as the report has it, and from how many blocks of calls.

    `provisional` where other load disturbed them, and the configuration accepts that. None where it
    left less than two blocks.
    """
    provisional = row.get("provisional", False)
    kept = range(len(shape.pairs)) if provisional else shape.undisturbed()
    logs = [math.log(statistics.median(shape.blocks_s[at])) for at in kept]
    if len(logs) < 2:
        return None
    spread = row.get("machine_spread", 0.0)
    seconds = row.get("paired_s")
    middle = math.log(seconds) if seconds else statistics.median(logs)
    deviation = math.hypot(statistics.stdev(logs), spread, LOAD_ORDER_STD)
    sizes = shape_of(shape.sizes)
    return {
        "name": shape_label(sizes),
        "shape": dict(sizes),
        "latency_s": math.exp(middle),
        "low_s": math.exp(middle - WIDTH * deviation),
        "high_s": math.exp(middle + WIDTH * deviation),
        "blocks": len(logs),
        "provisional": provisional,
    }


def workload_s(record: LatencyRecord) -> float | None:
    """Return the median seconds of the fixed workload around the measurement, None without it."""
    both = record.reference
    return statistics.median(both.before.rounds_s + both.after.rounds_s) if both else None
