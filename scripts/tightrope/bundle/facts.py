"""bundle.json: what the programs of a bundle know of it."""

import platform
from pathlib import Path
from typing import Any

from tightrope.bundle.stated import stated, workload_s
from tightrope.bundle.subject import Subject
from tightrope.inputs.image_settings import load_settings
from tightrope.measure.answers import largest_batch
from tightrope.signature import IMAGE

SCHEMA = 1
# file suffixes of code that was compiled for the instructions of the processor at hand
COMPILED = (".so", ".pt2", ".blob")


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
