"""Starting point of a training run: model, train split, tokenizer or image processor."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import LabelsManifest, SourceManifest
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.encode import Example, read_split
from tightrope.inputs.image_settings import load_settings, save_settings
from tightrope.inputs.images import EncodedImages
from tightrope.inputs.texts import require_sequence
from tightrope.model.changes import Changes
from tightrope.model.classifier import load_classifier
from tightrope.model.config import positions
from tightrope.signature import IMAGE
from tightrope.training.augmentation import AUGMENTATIONS
from tightrope.training.examples import Subject, image_subject, text_subject
from tightrope.training.recipe import Recipe
from tightrope.training.teaching import Teaching
from tightrope.training.tokenizer import load_tokenizer, save_tokenizer

# a split of at most this size is kept decoded; a larger split is decoded in every epoch
KEPT_BYTES = 2**30


class Start(NamedTuple):
    """A model and its train split.

    `input_fields` are those of the checkpoint's manifest, `save(folder)` writes the tokenizer
    or image processor, and `subject(recipe)` returns the training subject.
    """

    model: Any
    input_fields: dict[str, int | None]
    save: Callable[[Path], None]
    subject: Callable[[Recipe], Subject]


def load_start(
    source: Path | str,
    data: Path | str,
    recipe: Recipe | None,
    *,
    changes: Changes,
    names: list[str] | None = None,
    teaching: Teaching | None = None,
    seed: int,
    may_get_head: bool = True,
) -> Start:
    """Load the model of manifest `source`, and the examples if manifest `data` is a split.

    `changes` are made to it; `names` are those of its outputs in the place of its own. With a
    recipe a new head takes the place of one that does not fit, if it `may_get_head`; with a
    `teaching` the model is its student, and its unlabelled texts are examples too. Raises
    TightropeError if there is a recipe but no examples, if the model cannot be changed so, or if
    it cannot learn from the teacher.
    """
    origin, material = read_manifest(source, SourceManifest), read_manifest(data, LabelsManifest)
    model = load_classifier(
        Path(source).parent,
        source=origin["source"],
        task=origin["task"],
        labels=material["labels"],
        names=names,
        new_head=(recipe is not None and may_get_head) or origin["source"].startswith("scratch:"),
        seed=recipe["seed"] if recipe else seed,
    )
    changes.apply(model)
    examples = read_split(data) if "split" in material else []
    if recipe is not None and not len(examples):
        raise TightropeError(f"{material['source']}: no examples to train on; remove train")
    of_texts = partial(start_of_texts, texts=material["labels"] is not None, teaching=teaching)
    start_of_task = start_of_images if origin["task"] == IMAGE else of_texts
    start = start_of_task(model, Path(source), origin["source"], examples, recipe)
    return start if teaching is None else taught(start, teaching, material["labels"])


def taught(start: Start, teaching: Teaching, labels: list[str] | None) -> Start:
    """Return `start` with a subject that learns from a teacher; `labels` are those of its data."""

    def subject(recipe: Recipe) -> Subject:
        plain = start.subject(recipe)
        teaching.check(type(start.model).__name__, labels, plain.rows)
        return replace(plain, teaching=teaching)

    return start._replace(subject=subject)


def start_of_texts(
    model: Any,
    source: Path,
    name: str,
    examples: Sequence[Example],
    recipe: Recipe | None,
    *,
    texts: bool,
    teaching: Teaching | None = None,
) -> Start:
    """Start for texts, or for random tokens; a student with random weights has its teacher's ids.

    Raises TightropeError if the recipe's sequence is too long for the model.
    """
    if teaching is not None:
        examples = [*examples, *teaching.unlabelled()]
        if name.startswith("scratch:"):
            source = teaching.folder / source.name
            model.resize_token_embeddings(teaching.manifest["vocabulary"])
    token_limit = positions(model.config.to_dict())
    require_sequence(name, token_limit, (recipe or {}).get("sequence", 0), key="train.sequence")
    tokenizer = load_tokenizer(source, name, examples, model.config, texts=texts)
    return Start(
        model,
        {"vocabulary": model.config.vocab_size, "max_sequence": token_limit},
        lambda folder: save_tokenizer(tokenizer, folder),
        lambda training_recipe: text_subject(
            model, tokenizer.backend_tokenizer, list(examples), sequence=training_recipe["sequence"]
        ),
    )


def start_of_images(
    model: Any, source: Path, name: str, examples: Sequence[Example], recipe: Recipe | None
) -> Start:
    """Start for images; the settings of the image processor fix the input size."""
    settings = load_settings(source.parent)

    def subject(training_recipe: Recipe) -> Subject:
        rows = decode_if_small(EncodedImages(examples, settings))
        labels = np.array([example["label"] for example in examples])
        augment = AUGMENTATIONS[training_recipe["augmentation"]]
        return image_subject(model, rows, labels, augment=augment)

    input_fields = {"height": settings.height, "width": settings.width, "max_sequence": None}
    return Start(model, input_fields, lambda folder: save_settings(folder, settings), subject)


def decode_if_small(rows: EncodedImages) -> Sequence[Arrays]:
    """Decode all rows in advance if they fit in KEPT_BYTES, else each on access."""
    small = sum(array.nbytes for array in rows[0].values()) * len(rows) <= KEPT_BYTES
    return list(rows) if small else rows
