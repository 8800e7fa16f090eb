"""A child process that times one engine of a model."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from tightrope.artifacts.manifest import classes_of, read_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.engines.load import load_engine
from tightrope.inputs.arrays import Arrays
from tightrope.jobs.child import Child, Limits
from tightrope.machine.cores import pinned_processors
from tightrope.measure.logits import check_logits
from tightrope.measure.timed_engine import TimedEngine
from tightrope.variants import parse


def engine_worker(
    engine: Path,
    checkpoint: Path | str,
    batches: list[Arrays],
    limits: Limits,
    *,
    threads: int,
    share: int,
) -> Child:
    """Return the child that times an engine, which it has not loaded yet, on `batches`.

    `engine` and `checkpoint` are manifests; `share` children share the memory of `limits`.
    """
    device = parse(read_manifest(engine, EngineManifest)["variant"]).device
    load = partial(load_engine, engine, threads=threads)
    check = partial(check_logits, classes=classes_of(checkpoint))
    timed = TimedEngine(load, batches, pinned_processors(threads), check, device=device)
    return Child(timed, replace(limits, memory_bytes=limits.memory_bytes / share))
