"""What an engine of a smaller structure is built from: the model with its first blocks only."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from tightrope.artifacts.files import storage_errors
from tightrope.artifacts.manifest import read_manifest, write_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.model.blocks import feed_forward_of, heads_of, stages_of, width_of
from tightrope.model.module import load_module
from tightrope.model.pruning import parameters, prune
from tightrope.model.structures import Structure, in_proportion
from tightrope.onnx.export import export_onnx
from tightrope.onnx.simplify import simplify_onnx

WEIGHTS = {"model.safetensors", "config.json"}


def structure_of(checkpoint: Path) -> Structure:
    """Return the structure of a checkpoint; raise TightropeError for a model of another form."""
    model = load_module(checkpoint.parent, torch.float32)
    return Structure(
        tuple(len(blocks) for blocks in stages_of(model)), width_of(model), heads_of(model)
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
    """Write the model with its first blocks and neurons only, for each of `structures`.

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
    """Write the checkpoint with the first blocks, neurons and heads of its model."""
    manifest = read_manifest(checkpoint, CheckpointManifest)
    model: Any = load_module(checkpoint.parent, torch.float32)
    blocks = [list(range(depth)) for depth in structure.depths]
    sizes: dict[str, Any] = {"intermediate": structure.width, "heads": structure.heads}
    if structure.heads is not None:
        sizes["kept_heads"] = [list(range(structure.heads))] * len(blocks[0])
    prune(model, blocks=blocks, neurons=first_neurons(model, structure), **sizes)
    with storage_errors(target.parent):
        for name in set(manifest["files"]) - WEIGHTS:
            (target.parent / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(checkpoint.parent / name, target.parent / name)
        model.save_pretrained(target.parent)
    write_manifest(target, **{**manifest, "parameters": parameters(model)})


def first_neurons(model: Any, structure: Structure) -> list[list[int]] | None:
    """Return the first neurons of each kept block, as many as the structure has, if any."""
    first = width_of(model)
    if structure.width is None or first is None:
        return None
    return [
        list(
            range(in_proportion(feed_forward_of(blocks[0])[0].out_features, structure.width, first))
        )
        for blocks, depth in zip(stages_of(model), structure.depths, strict=True)
        for _ in range(depth)
    ]
