"""bundle.json and README.md: what a bundle says of itself, with its latencies as intervals."""

import math
import platform
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from tightrope.bundle.subject import Subject, imported
from tightrope.decide.phrases import said, why
from tightrope.decide.result import LatencyRow, Shape
from tightrope.inputs.image_settings import load_settings
from tightrope.inputs.texts import cut_side
from tightrope.machine.distributions import licence_of
from tightrope.measure.accuracy import largest_batch
from tightrope.records.latency import LOAD_ORDER_STD, TimedShape
from tightrope.report.style.marks import code_span, plain_text
from tightrope.report.style.numbers import milliseconds, moment, ratio, ratio_interval, shape_label
from tightrope.signature import IMAGE
from tightrope.sources.local import distribution_of
from tightrope.statistics import LEVEL

SCHEMA = 1
# file suffixes of code that was compiled for the instructions of the processor at hand
COMPILED = (".so", ".pt2", ".blob")
# standard deviations of a normal distribution within which 95 % lie
WIDTH = statistics.NormalDist().inv_cdf(1 - LEVEL / 2)
# of `ImageSettings`, how an image becomes pixel values
OF_IMAGES = ("height", "width", "resize", "crop", "resample", "rescale", "mean", "std")


def facts_of(subject: Subject, *, longest: int) -> dict[str, Any]:
    """Return bundle.json; `longest` is at how many tokens a text is cut.

    `requires` are the instruction sets without which the engine would crash, `latency` the interval
    at each shape that has one, `workload_s` the median seconds of a fixed workload around the
    measurement on `processors` processors, None without it.
    """
    latency, variant = subject.latency, subject.variant
    folder = subject.paths.artifacts.checkpoint.parent
    images = load_settings(folder) if subject.checkpoint["task"] == IMAGE else None
    rows = {row.shape: row for row in subject.result.latency}
    intervals = (interval(shape, rows[Shape(**shape.sizes)]) for shape in latency.shapes)
    around = latency.reference
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
        "cut": None if images else cut_side(folder),
        "image": images and {name: getattr(images, name) for name in OF_IMAGES},
        "machine": platform.machine(),
        "requires": required(subject),
        "host": latency.host,
        "measured": latency.measured,
        "latency": [one for one in intervals if one is not None],
        "processors": len(latency.processors),
        "workload_s": around and statistics.median(around.before.rounds_s + around.after.rounds_s),
    }


def required(subject: Subject) -> list[str]:
    """Return the instruction sets that a compiled engine may use; none for one that asks first."""
    compiled = any(name.endswith(COMPILED) for name in subject.engine["files"])
    return list(subject.latency.host["isa"]) if compiled else []


def interval(shape: TimedShape, row: LatencyRow) -> dict[str, Any] | None:
    """Return the latency at one shape as the report has it, and from how many blocks of calls.

    The interval holds 95 % of further measurements on the same machine, if the logs of their times
    are normally distributed: their standard deviation comes from the blocks of this measurement,
    from the changes of machine speed between the jobs of the run (`machine_spread` of summary.json)
    and from loading the engine anew.

    `provisional` where other load disturbed them, and the configuration accepts that. None where it
    left less than two blocks.
    """
    kept = range(len(shape.pairs)) if row.provisional else shape.undisturbed()
    logs = [math.log(statistics.median(shape.blocks_s[at])) for at in kept]
    if len(logs) < 2:
        return None
    middle = math.log(row.paired_s) if row.paired_s else statistics.median(logs)
    deviation = math.hypot(statistics.stdev(logs), row.machine_spread, LOAD_ORDER_STD)
    return {
        "name": shape_label(row.shape),
        "shape": row.shape.sizes,
        "latency_s": math.exp(middle),
        "low_s": math.exp(middle - WIDTH * deviation),
        "high_s": math.exp(middle + WIDTH * deviation),
        "blocks": len(logs),
        "provisional": row.provisional,
    }


def card(subject: Subject, facts: Mapping[str, Any], template: Path) -> str:
    """Return the text of README.md, from `facts` of bundle.json and the summary."""
    values = {
        **vars(subject),
        "accuracy": subject.result.accuracy,
        "facts": facts,
        "model": subject.summary.models[subject.model],
        "packages": imported(subject.variant.engine, subject.checkpoint["task"]),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "why": why,
    }
    return rendered(template, values, **FILTERS)


def rendered(template: Path, values: Mapping[str, Any], **filters: Callable[..., Any]) -> str:
    """Return the text of a template with these filters; a name without a value is an error."""
    jinja = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    jinja.filters.update(filters)
    return jinja.from_string(template.read_text()).render(values)


def of_source(source: str) -> str:
    """Return the licence of a source of data or of a checkpoint, or who states it."""
    kind, _, rest = source.partition(":")
    if kind == "package":
        return of_package(rest.partition("/")[0])
    if kind == "docstrings":
        return "; ".join(f"{name}: {of_package(name)}" for name in rest.split(","))
    if kind == "hub":
        return f"stated on the page of {rest}"
    return f"not stated: {source}"


def of_package(module: str) -> str:
    """Return the licence of the distribution that holds a top-level package."""
    name = distribution_of(module)
    return (licence_of(name) if name else None) or "not stated"


# of the model card
FILTERS: dict[str, Callable[..., Any]] = {
    "code": code_span,
    "licence": licence_of,
    "milliseconds": milliseconds,
    "moment": moment,
    "plain": plain_text,
    "ratio": ratio,
    "ratio_interval": ratio_interval,
    "said": said,
    "shape": shape_label,
    "source_licence": of_source,
}
