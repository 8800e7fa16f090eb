"""Build an engine into its folder, in a supervised child, and describe it in engine.json."""

import time
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

from tightrope.artifacts.failures import read_onnx_or_raise
from tightrope.artifacts.files import sha256, storage_errors
from tightrope.artifacts.manifest import (
    checkpoint_of,
    clear_folder,
    identity,
    open_manifest,
    require_descent,
    write_manifest,
)
from tightrope.artifacts.manifest_types import CheckpointManifest, EngineManifest
from tightrope.engines.load import engine_module
from tightrope.errors import WorkFailed
from tightrope.jobs.child import failure, supervised
from tightrope.jobs.execution import Execution
from tightrope.machine.processes import peak_rss_bytes
from tightrope.runtimes.executed import require_precision, unknown_types
from tightrope.signature import of_checkpoint
from tightrope.variants import Variant, parse

ENGINE = "engine.json"


def build_engine(
    name: str,
    source: Path | str,
    target: Path | str,
    *,
    execution: Execution,
    options: dict[str, Any] | None = None,
    samples: dict[str, str] | None = None,
    state: Path | str | None = None,
) -> None:
    """Build variant `name` next to its manifest `target`; a failure is recorded in the manifest.

    `options` are the engine's settings; the manifest keeps them for `load`. `samples` are paths of
    the files that an engine collects its own calibration statistics from. `state` is the folder of
    what an engine keeps for its next builds, which may be missing; where none is given it is in
    `work/` beside the folder of engines. A transient failure raises TightropeError unless this is
    the last attempt.
    """
    variant, folder, options = parse(name), clear_folder(target), options or {}
    build = partial(build_in_folder, variant, Path(source), folder, threads=execution.threads)
    kept = Path(state) if state else folder.parent.parent / "work" / variant.engine
    work = partial(build, options=options, samples=samples, state=kept)
    began = time.perf_counter()
    try:
        facts = {"status": "ok", **supervised(work, limits=execution.limits)}
    except WorkFailed as error:
        facts = {**failure(error, name, execution.limits), "checkpoint": None}
        clear_folder(target)
    write_manifest(
        target,
        **facts,
        variant=name,
        precision=variant.precision,
        options=options,
        sources={Path(path).name: sha256(path) for path in (source, *(samples or {}).values())},
        libraries=execution.libraries,
        build_s=time.perf_counter() - began,
    )


def build_in_folder(
    variant: Variant,
    source: Path,
    folder: Path,
    *,
    threads: int,
    options: dict[str, Any],
    samples: dict[str, str] | None,
    state: Path,
) -> dict[str, Any]:
    """Build in the child; return the engine module's description, peak memory and model.

    Raises ArtifactError where the source was made from another checkpoint than the samples'.
    """
    module = engine_module(variant.engine)
    settings = {"precision": variant.precision, "device": variant.device, "threads": threads}
    own: dict[str, Any] = {"samples": samples} if samples else {}
    if "state" in signature(module.build).parameters:
        own["state"] = state
    with storage_errors(folder):
        facts = module.build(source, folder, **settings, options=options, **own)
    require_precision(facts["executed"], variant.precision)
    if unknown := unknown_types(facts["executed"]):
        facts = {**facts, "executed_unknown": unknown}
    facts = {**facts, "build_peak_rss_bytes": peak_rss_bytes(), **described(source)}
    if samples and "checkpoint" in samples:
        require_descent(source, facts["checkpoint"], samples["checkpoint"])
    return facts


def described(source: Path) -> dict[str, Any]:
    """Return `inputs` and `max_sequence` of the model in `source`, and its `checkpoint`.

    That is the identity of the checkpoint that it was made from; None where it is not known. A
    source is an ONNX file, or the manifest of another engine or of the checkpoint.
    """
    if source.suffix == ".onnx":
        # imports onnx
        from tightrope.onnx.file import max_sequence, signature_of

        model = read_onnx_or_raise(source)
        facts, longest = signature_of(model).facts(), max_sequence(model)
        return {"inputs": facts, "max_sequence": longest, "checkpoint": checkpoint_of(model)}
    if source.name == ENGINE:
        engine = open_manifest(source, EngineManifest)
        return {name: engine[name] for name in ("inputs", "max_sequence", "checkpoint")}
    manifest = open_manifest(source, CheckpointManifest)
    return {
        "inputs": of_checkpoint(manifest).facts(),
        "max_sequence": manifest["max_sequence"],
        "checkpoint": identity(manifest),
    }


def run_build(job: Any) -> None:
    """Build the engine of a `tightrope.jobs.job.Job` on a machine that matches its host key.

    Inputs besides `source` are the samples for the engine's own statistics.
    """
    build_engine(
        job.settings.variant,
        job.input.source,
        job.output.manifest,
        execution=Execution.of(job),
        options=job.settings.options,
        samples={name: path for name, path in job.input.items() if name != "source"},
        state=job.settings.state,
    )
