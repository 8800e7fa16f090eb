"""Smaller structures of a trained model as files, and the importance of its blocks and neurons."""

import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch

from tightrope.artifacts.files import storage_errors
from tightrope.artifacts.manifest import read_manifest, write_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, LabelsManifest
from tightrope.errors import TightropeError
from tightrope.jobs.progress import ProgressBar
from tightrope.model.importance import Batch, importance_of, parameter_table
from tightrope.model.module import load_module
from tightrope.model.pruning import Changes, head_count, parameters, prune, stages_of, width_of
from tightrope.model.structures import Judged, Structure, Table
from tightrope.onnx.export import export_onnx
from tightrope.onnx.simplify import simplify_onnx
from tightrope.training.examples import Subject, draw_epochs, load_start
from tightrope.training.recipe import whole_recipe
from tightrope.training.step import LABELS, prepare_device

WEIGHTS = {"model.safetensors", "config.json"}
# so many examples judge neurons, and fewer judge blocks, each with a pass of its own
EXAMPLES, FEWER, BATCH = 512, 128, 16


def structure_of(checkpoint: Path) -> Structure:
    """Return the structure of a checkpoint; raise TightropeError for a model of another form."""
    model = load_module(checkpoint.parent, torch.float32)
    return Structure(
        tuple(len(blocks) for blocks in stages_of(model)), width_of(model), head_count(model)
    )


def write_sources(
    checkpoint: Path,
    data: Path,
    structures: Sequence[Structure],
    folder: Path,
    *,
    kind: str,
    threads: int,
) -> list[str]:
    """Write the model with its first blocks and so many neurons, for each of `structures`.

    Returns what their engines are built from: the manifest of a checkpoint, or simplified ONNX
    where `kind` is "onnx".
    """
    sources = []
    for number, structure in enumerate(structures):
        own = folder / str(number)
        smaller = own / "checkpoint" / "checkpoint.json"
        write_checkpoint(checkpoint, structure, smaller)
        sources.append(str(smaller))
        if kind == "onnx":
            exported, simplified = own / "model.onnx", own / "model.simplified.onnx"
            export_onnx(smaller, exported, threads=threads)
            simplify_onnx(exported, smaller, data, simplified, threads=threads)
            exported.unlink()
            sources[-1] = str(simplified)
    return sources


def write_checkpoint(checkpoint: Path, structure: Structure, target: Path) -> None:
    """Write the checkpoint with the first blocks of its model, and so many neurons and heads."""
    manifest = read_manifest(checkpoint, CheckpointManifest)
    model: Any = load_module(checkpoint.parent, torch.float32)
    blocks = [list(range(depth)) for depth in structure.depths]
    prune(model, blocks=blocks, intermediate=structure.width, heads=structure.heads)
    with storage_errors(target.parent):
        for name in set(manifest["files"]) - WEIGHTS:
            (target.parent / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(checkpoint.parent / name, target.parent / name)
        model.save_pretrained(target.parent)
    write_manifest(target, **{**manifest, "parameters": parameters(model)})


class Analysis(NamedTuple):
    """Importance of the blocks and neurons, and the number of weights of each structure."""

    judged: Judged
    parameters: Table


def analyse(
    source: Path | str,
    data: Path | str,
    *,
    names: list[str] | None,
    sequence: int,
    seed: int,
    threads: int,
) -> Analysis:
    """Return the importance on up to EXAMPLES examples of split `data`, drawn by the seed.

    `source` is the manifest of a trained checkpoint, `names` those of its outputs in the place of
    its own. Texts are cut at `sequence` tokens. Raises TightropeError without labels, and for a
    model whose blocks are not found.
    """
    material = read_manifest(data, LabelsManifest)
    if material["labels"] is None:
        raise TightropeError(
            f"prune: {material['source']} has no labels, by which a target judges what is "
            "important; give prune.layers and prune.intermediate in its place"
        )
    prepare_device("cpu", threads)
    start = load_start(source, data, None, changes=Changes(), names=names, seed=seed)
    subject = start.subject(whole_recipe({"sequence": sequence}, seed))
    start.model.eval()
    fewer = [*islice(batches(subject, seed), FEWER // BATCH)]
    judged = importance_of(start.model, batches(subject, seed), fewer)
    return Analysis(judged, parameter_table(start.model))


def batches(subject: Subject, seed: int) -> Iterator[Batch]:
    """Yield batches of examples of similar length."""
    epochs = min(1.0, EXAMPLES / len(subject.rows))
    draw = partial(draw_epochs, len(subject.rows), subject.lengths)
    (drawn,) = draw(size=BATCH, epochs=epochs, seed=seed)
    with ProgressBar("importance", len(drawn)) as bar:
        for indices in drawn:
            inputs, targets = subject.batch(indices)
            tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}
            yield tensors, torch.from_numpy(targets[LABELS])
            bar.add()
