"""The folder of one engine: built in a supervised child, described by its engine.json."""

import time
from pathlib import Path
from typing import Any

from tightrope.artifacts.files import sha256, storage_errors
from tightrope.artifacts.manifest import clear_folder, write_manifest
from tightrope.engines.load import engine_module
from tightrope.errors import WorkFailed
from tightrope.jobs.child import Limits, failure, supervised
from tightrope.machine.cores import intra_op_threads
from tightrope.machine.host import require_host
from tightrope.machine.processes import peak_rss_bytes
from tightrope.runtimes.executed import require_precision
from tightrope.variants import Variant, parse


def build_engine(
    name: str,
    source: Path | str,
    target: Path | str,
    *,
    threads: int,
    limits: Limits,
    libraries: dict[str, str | None],
    options: dict[str, Any] | None = None,
    samples: dict[str, str] | None = None,
) -> None:
    """Build variant `name` beside its manifest `target`, which says so also when that fails.

    `options` are the engine's section of the configuration; the manifest keeps them for `load`.
    An engine that collects statistics of its own gets `samples`, the paths of the files that they
    come from. A transient failure raises TightropeError unless this is the last attempt.
    """
    variant, folder, options = parse(name), clear_folder(target), options or {}
    work = (variant, Path(source), folder, threads, options, samples)
    began = time.perf_counter()
    try:
        facts = {"status": "ok", **supervised(build_in_folder, *work, limits=limits)}
    except WorkFailed as error:
        facts = failure(error, name, limits)
        clear_folder(target)
    write_manifest(
        target,
        **facts,
        variant=name,
        precision=variant.precision,
        options=options,
        sources={Path(path).name: sha256(path) for path in (source, *(samples or {}).values())},
        libraries=libraries,
        build_s=time.perf_counter() - began,
    )


def build_in_folder(
    variant: Variant,
    source: Path,
    folder: Path,
    threads: int,
    options: dict[str, Any],
    samples: dict[str, str] | None,
) -> dict[str, Any]:
    """Run in the child: what the engine module says about the files, and the memory it took."""
    module = engine_module(variant.engine)
    settings = {"precision": variant.precision, "device": variant.device, "threads": threads}
    own_samples = {"samples": samples} if samples else {}
    with storage_errors(folder):
        facts = module.build(source, folder, **settings, options=options, **own_samples)
    require_precision(facts["executed"], variant.precision)
    return {**facts, "build_peak_rss_bytes": peak_rss_bytes()}


def run_build(job: Any) -> None:
    """Build the engine of a `tightrope.jobs.job.Job`, on a machine of the host key that it names.

    Inputs besides `source` are those of the engine's own samples.
    """
    require_host(job.params.host)
    build_engine(
        job.params.variant,
        job.input.source,
        job.output.manifest,
        threads=intra_op_threads(job.params.threads),
        libraries=job.params.libraries,
        options=job.params.options,
        limits=Limits.of(job.resources),
        samples={name: path for name, path in job.input.items() if name != "source"},
    )
