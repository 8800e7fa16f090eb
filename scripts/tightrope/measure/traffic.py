"""Measure a variant under traffic: MLCommons LoadGen sends queries, dynamic batching serves."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from tightrope.artifacts.files import sha256, storage_errors
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.artifacts.paths import Artifacts
from tightrope.engines.load import load_engine
from tightrope.inputs.arrays import PIXELS, Arrays, length
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.jobs.child import fill_in
from tightrope.machine.cores import let_threads_spin
from tightrope.measure.run import TimingSettings, can_be_timed, facts_of_run
from tightrope.measure.traffic_loadgen import Bench, remove_folder
from tightrope.measure.traffic_padding import bucket_edges, padded_lengths
from tightrope.measure.traffic_scenarios import measure_scenarios
from tightrope.records.traffic import TrafficRecord
from tightrope.signature import IMAGE

# memory for the decoded images of one engine: 1783 images of 3 x 224 x 224 in float32
IMAGE_BYTES = 2**30


def measure_traffic(
    artifacts: Artifacts,
    target: Path | str,
    settings: TimingSettings,
    *,
    model: str,
    variant: str,
    image_bytes: int = IMAGE_BYTES,
) -> None:
    """Write the TrafficRecord of `variant`, also if it cannot run, and LoadGen's logs.

    `settings.plan` holds `scenarios`, `padding` (for images only `none`), `batch`, `buckets` (for
    texts), `seconds`, `p99_bound_s`. As many images are sent as fit, decoded, in `image_bytes`.
    The logs are in the folder with the record's name without `.json`, which is deleted first. A
    transient failure raises TightropeError unless this is the last attempt.
    """
    checkpoint = read_manifest(artifacts.checkpoint, CheckpointManifest)
    execution, images = settings.execution, checkpoint["task"] == IMAGE
    record = TrafficRecord(
        **facts_of_run(artifacts, execution, model=model, variant=variant),
        data_sha256=sha256(artifacts.data),
        threads=execution.threads,
        plan=settings.plan,
        longest=None if images else settings.max_sequence,
        height=checkpoint["height"] if images else None,
        width=checkpoint["width"] if images else None,
    )
    folder = clear_logs(Path(target))
    if can_be_timed(record, artifacts.engine):
        # bound with partial: the terminal in the settings cannot be sent through the child's pipe
        work = partial(serve_traffic, artifacts, folder, settings, image_bytes)
        fill_in(record, work, limits=execution.limits)
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        record.logs = {str(file.relative_to(folder.parent)): sha256(file) for file in files}
    record.write(target)


def clear_logs(target: Path) -> Path:
    """Delete record `target` and the folder of its logs; return the path of that folder."""
    folder = target.with_suffix("")
    with storage_errors(target):
        target.unlink(missing_ok=True)
    remove_folder(folder)
    return folder


def serve_traffic(
    artifacts: Artifacts, folder: Path, settings: TimingSettings, image_bytes: int
) -> dict[str, Any]:
    """Run all tests, in the child; return the fields of the record from `samples` on."""
    processors = sorted(os.sched_getaffinity(0))
    machine = settings.machine(processors)
    plan, max_sequence = settings.plan, settings.max_sequence
    checkpoint = read_manifest(artifacts.checkpoint, CheckpointManifest)
    examples = read_split(artifacts.data)
    encode = load_encoder(artifacts.checkpoint, max_sequence=max_sequence)
    rows = ready_samples(encode(examples), image_bytes=image_bytes)
    lengths = [length(row) for row in rows]
    edges = bucket_edges(lengths, plan["buckets"]) if "bucketed" in plan["padding"] else []
    let_threads_spin()
    run, _ = load_engine(artifacts.engine, threads=settings.execution.threads)
    classes = len(checkpoint["labels"])
    facts: dict[str, Any] = {"samples": len(rows), "edges": edges}
    facts["lengths"] = [] if checkpoint["task"] == IMAGE else lengths
    benches = []
    for padding in plan["padding"]:
        padded = padded_lengths(padding, lengths, max_sequence=max_sequence, edges=edges)
        benches.append(Bench(run, rows, padded, plan, classes, folder, padding, machine))
    facts["tests"], facts["answers"] = measure_scenarios(benches)
    return facts | {"lost_s": machine.lost_s, "busiest": machine.busiest}


def ready_samples(rows: Sequence[Arrays], *, image_bytes: int) -> list[Arrays]:
    """Return all encoded texts, or decode as many images as fit in `image_bytes`, at least one.

    These are the first images of the split; any first n images hold the labels in proportion.
    """
    if PIXELS not in rows[0]:
        return list(rows)
    held = max(1, image_bytes // rows[0][PIXELS].nbytes)
    return list(tqdm(rows[:held], desc="decoding"))
