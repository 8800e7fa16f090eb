"""Train or convert a source checkpoint into the classifier that every variant is built from."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch

from tightrope.artifacts.files import digest, read_json, sha256, storage_errors
from tightrope.artifacts.manifest import clear_folder, named, read_manifest, write_manifest
from tightrope.artifacts.manifest_types import LabelsManifest, SourceManifest
from tightrope.checkpoint.source import importer_of
from tightrope.inputs.encode import require_sizes, some_examples
from tightrope.inputs.reference import better_order, check_prepared
from tightrope.machine.interference import GAP_CORES, LOOK_SECONDS, foreign_cores
from tightrope.model.config import BY_NAME, matching, output_names
from tightrope.model.module import logits_only, runner
from tightrope.model.pruning import Changes
from tightrope.signature import IMAGE
from tightrope.training.examples import Start, load_start
from tightrope.training.loop import TrainingState, fine_tune
from tightrope.training.recipe import QUANTIZATION_AWARE, Recipe, whole_recipe
from tightrope.training.step import prepare_device
from tightrope.training.teaching import read_teaching

UNCHANGED = Changes()
# of the losses of all steps the manifest keeps so many means
MEANS = 10


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How a checkpoint is trained, or only converted if there is no `recipe`.

    `model` is the name that the manifest keeps, if any. `qat` is a recipe in the place of `recipe`,
    of a training with quantized values; it says the `scheme`. `inputs` maps to the input names of
    an ONNX file, `labels` names the outputs of the checkpoint in their order. `changes` are made to
    the model before training; it must take the `sizes` that are measured, see `require_sizes`.
    `distill` are the weights of the loss of a student, see `training.teaching`. Folder `state`
    holds the last state during training: a killed run resumes from it if `provenance`, which
    identifies code and libraries, has not changed.
    """

    recipe: Recipe | None
    inputs: dict[str, str]
    threads: int
    seed: int
    model: str | None = None
    changes: Changes = UNCHANGED
    qat: Recipe | None = None
    labels: list[str] | None = None
    distill: dict[str, Any] | None = None
    sizes: Sequence[str] = ()
    device: str = "cpu"
    state: Path | str | None = None
    provenance: Any = None

    @property
    def asked(self) -> Recipe | None:
        """Return the recipe of the training that is asked for, None for none."""
        return self.recipe or self.qat


def train_model(
    manifest: Path | str,
    settings: TrainingSettings,
    micro_batches: int = 1,
    *,
    source: Path | str,
    data: Path | str,
    teacher: Path | str | None = None,
    terminal: TextIO,
) -> None:
    """Write the fp32 classifier, its tokenizer or image processor, and last its `manifest`.

    With a recipe, the checkpoint of manifest `source`, no ONNX file, is fine-tuned on the split
    `data`, each batch in so many `micro_batches`, with outputs of its `teacher`; the same machine
    and number of threads give the same bytes. Without training, `data` may be data.json.
    """
    origin = read_manifest(source, SourceManifest)
    if import_checkpoint := importer_of(origin["source"]):
        given = {"inputs": settings.inputs, "labels": settings.labels, "sizes": settings.sizes}
        keep = partial(import_checkpoint, **given)
        return keep(manifest, source=source, data=data, model=settings.model, terminal=terminal)
    recipe = settings.asked and whole_recipe(settings.asked, settings.seed)
    prepare_device(settings.device, settings.threads)
    start = load_start(
        source,
        data,
        recipe,
        changes=settings.changes,
        names=settings.labels,
        teaching=read_teaching(teacher, settings.distill) if teacher and settings.distill else None,
        seed=settings.seed,
        may_get_head=settings.qat is None,
    )
    require_sizes(origin["source"], start.input_fields, settings.sizes)
    model = start.model
    files = [origin["files"], sha256(data), teacher and sha256(teacher)]
    state = state_of(settings, [files, recipe, repr(model)])
    made: dict[str, Any] = {"training": None, "qat": None}
    if recipe:
        options = {"micro_batches": micro_batches, "state": state}
        made = trained(start, recipe, settings, terminal, **options)
    folder = clear_folder(manifest)
    # without a path of this machine
    model.config._name_or_path = ""
    with storage_errors(folder):
        model.save_pretrained(folder)
        start.save(folder)
    # else its tokenizer and the order of its outputs are this project's own
    brought = not origin["source"].startswith("scratch:")
    checked = matched = None
    if brought:
        name, folders = origin["source"], (Path(source).parent, folder)
        labels = read_manifest(data, LabelsManifest)["labels"] or []
        matched = told_matching(name, folders[0], labels, settings, terminal)
        unchanged = recipe is None and settings.changes == UNCHANGED
        answer = reference = runner(logits_only(model))
        if unchanged:
            reference = runner(logits_only(original(origin["task"], folders[0])))
        examples, vocabulary = some_examples(data), start.input_fields.get("vocabulary")
        own: dict[str, Any] = {"longest": start.input_fields["max_sequence"], "terminal": terminal}
        pair = answer, reference
        checked = check_prepared(name, folders, examples, *pair, vocabulary=vocabulary, **own)
        if matched not in (None, BY_NAME):
            order = range(len(labels))
            better = better_order(name, folder, examples, labels, answer, order, **own)
            matched = "; ".join(filter(None, (matched, better)))
    write_manifest(
        manifest,
        **{name: origin[name] for name in ("task", "source")},
        **named(settings.model),
        recipe=recipe,
        **settings.changes.facts(),
        distill=settings.distill,
        **made,
        reference=checked,
        matched=matched,
        labels=[model.config.id2label[index] for index in range(model.config.num_labels)],
        parameters=sum(weight.numel() for weight in model.parameters()),
        architecture=type(model).__name__,
        **start.input_fields,
    )
    if state:
        state.clear()


def told_matching(
    name: str, folder: Path, labels: list[str], settings: TrainingSettings, terminal: TextIO
) -> str | None:
    """Tell how outputs of a model that is not trained have got their labels, and return it."""
    if settings.asked is not None or not labels:
        return None
    config = read_json(folder / "config.json", dict[str, Any])
    found = matching(settings.labels or output_names(name, config, len(labels)), labels)
    if found is not None:
        print(f"{name}: {found}", file=terminal)
    return found


def original(task: str, folder: Path) -> Any:
    """Return the classifier that transformers makes of the files in the folder."""
    import transformers

    kind = "ImageClassification" if task == IMAGE else "SequenceClassification"
    options = {"dtype": torch.float32, "trust_remote_code": False, "use_safetensors": True}
    return getattr(transformers, f"AutoModelFor{kind}").from_pretrained(folder, **options)


def trained(
    start: Start, recipe: Recipe, settings: TrainingSettings, terminal: TextIO, **options: Any
) -> dict[str, Any]:
    """Train the model of `start`; return what the manifest holds of it, which is reproducible.

    That is its `training`, and as `qat` the scheme and the ranges that it learnt, None of others.
    `options` are those of `fine_tune`.
    """
    processors = sorted(os.sched_getaffinity(0))
    if (used := foreign_cores(processors, LOOK_SECONDS)) > GAP_CORES:
        busy = f"other programs use {used:.1f} of {len(processors)} processors"
        print(f"fine-tuning: {busy}; it takes longer beside them", file=terminal)
    subject, train = start.subject(recipe), fine_tune
    if settings.qat is not None:
        train = import_module(QUANTIZATION_AWARE.replace("/", ".")).fine_tune_quantized
    options |= {"device": settings.device, "terminal": terminal}
    history, properties = train(subject, recipe, **options)
    tenths = [part for part in np.array_split(history.losses, MEANS) if len(part)]
    qat: dict[str, Any] | None = None
    if settings.qat is not None:
        qat = {"scheme": settings.qat["scheme"]}
        qat |= {name: properties.pop(name) for name in ("ranges", "outputs") if name in properties}
    training = {
        **properties,
        "losses": [round(float(np.mean(part)), 6) for part in tenths],
        "epochs": [
            {name: epoch[name] for name in ("loss", "accuracy")} for epoch in history.epochs
        ],
        "micro_batches": history.micro_batches,
        "truncation": subject.truncation,
    }
    return {"training": training, "qat": qat}


def state_of(settings: TrainingSettings, training: list[Any]) -> TrainingState | None:
    """Return the saved state of a training of these files, recipe and architecture, if any."""
    if settings.state is None:
        return None
    # other neurons of the same number are other weights
    changes = [dict(settings.changes.prune), settings.distill]
    key = [*training, changes, settings.threads, settings.device, settings.provenance]
    return TrainingState(settings.state, digest(key))
