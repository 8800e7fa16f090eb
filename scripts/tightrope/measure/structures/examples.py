"""Importance of the blocks and neurons of a trained classifier on examples of its train split."""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import torch
from tqdm import tqdm

from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import LabelsManifest
from tightrope.errors import TightropeError
from tightrope.model.changes import Changes
from tightrope.model.importance import Batch, importance_of, parameter_table
from tightrope.model.structures import Judged, Table
from tightrope.training.examples import Subject, draw_epochs
from tightrope.training.recipe import whole_recipe
from tightrope.training.start import load_start
from tightrope.training.step import prepare_device
from tightrope.training.teaching import LABELS

# so many examples judge neurons, and fewer judge blocks, each with a pass of its own
EXAMPLES, FEWER, BATCH = 512, 128, 16


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
    for indices in tqdm(drawn, desc="importance", mininterval=2):
        inputs, targets = subject.batch(indices)
        tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}
        yield tensors, torch.from_numpy(targets[LABELS])
