"""The folder of one engine: built in a supervised child, described by its engine.json."""

import time
from pathlib import Path
from typing import Any

from tightrope.calibration import calibration_rows, read_cache
from tightrope.files import sha256, storage_errors
from tightrope.inputs import Arrays, batches_of_equal_length
from tightrope.loading import engine_module
from tightrope.manifest import clear_folder, write_manifest
from tightrope.supervise import Limits, WorkFailed, failure, supervised
from tightrope.variants import Variant, parse


def build_engine(
    name: str,
    source: Path | str,
    target: Path | str,
    *,
    threads: int,
    limits: Limits,
    libraries: dict[str, str | None],
    samples: dict[str, Any] | None = None,
) -> None:
    """Build variant `name` beside its manifest `target`, which says so also when that fails.

    `samples` (paths `calibration`, `data` and `checkpoint`) is for engines that collect
    statistics of their own. A transient failure raises TightropeError unless this is the
    last attempt.
    """
    variant, folder = parse(name), clear_folder(target)
    work = (variant, Path(source), folder, threads, samples)
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
        sources={Path(source).name: sha256(source)},
        libraries=libraries,
        build_s=time.perf_counter() - began,
    )


def build_in_folder(
    variant: Variant, source: Path, folder: Path, threads: int, samples: dict[str, Any] | None
) -> dict[str, Any]:
    """Run in the child: what the engine module says about the files that it wrote."""
    options = {"batches": calibration_batches(source, **samples)} if samples else {}
    module = engine_module(variant.engine)
    with storage_errors(folder):
        facts = module.build(
            source, folder, precision=variant.precision, threads=threads, **options
        )
    wanted = variant.precision.partition("-")[0]
    if not any(wanted in counts for counts in facts["executed"].values()):
        ran = sorted({name for counts in facts["executed"].values() for name in counts})
        raise WorkFailed(f"ran in {', '.join(ran)}: no operator ran in {wanted}", transient=False)
    return facts


def calibration_batches(
    source: Path, *, calibration: str, data: str, checkpoint: str
) -> list[Arrays]:
    """The samples of a calibration cache, one a batch and without padding."""
    cache = read_cache(calibration, model=source)
    sequence = cache["options"]["max_sequence"]
    rows = calibration_rows(data, checkpoint, samples=cache["samples"], max_sequence=sequence)
    return list(batches_of_equal_length(rows, 1))
