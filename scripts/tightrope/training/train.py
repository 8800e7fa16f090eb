"""Train or convert a source checkpoint into the classifier that every variant is built from."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

from tightrope.artifacts.files import digest, sha256, storage_errors
from tightrope.artifacts.manifest import clear_folder, named, read_manifest, write_manifest
from tightrope.artifacts.manifest_types import SourceManifest
from tightrope.checkpoint.source import importer_of
from tightrope.model.changes import Changes
from tightrope.training.examples import Subject
from tightrope.training.loop import History, fine_tune
from tightrope.training.progress import average_tenths
from tightrope.training.recipe import QUANTIZATION_AWARE, Recipe, whole_recipe
from tightrope.training.start import Start, load_start
from tightrope.training.state import TrainingState
from tightrope.training.step import prepare_device
from tightrope.training.teaching import read_teaching

UNCHANGED = Changes()


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How a checkpoint is trained, or only converted if there is no `recipe`.

    `model` is the name that the manifest keeps, if any. `qat` is a recipe in the place of `recipe`,
    of a training with quantized values; it says the `scheme`. `inputs` maps to the input names of
    an ONNX file, `labels` names the outputs of the checkpoint in their order. `changes` are made to
    the model before training. `distill` are the weights of the loss of a student, see
    `training.objective`. Folder `state` holds the last state during training: a killed run resumes
    from it if `provenance`, which identifies code and libraries, has not changed.
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
        keep = partial(import_checkpoint, inputs=settings.inputs, labels=settings.labels)
        return keep(manifest, source=source, data=data, model=settings.model)
    recipe = settings.asked and whole_recipe(settings.asked, settings.seed)
    prepare_device(settings.device, settings.threads)
    start = start_of(source, data, recipe, settings, teacher)
    state = state_of(settings, [origin["files"], sha256(data), teacher and sha256(teacher)], start)
    options = {"micro_batches": micro_batches, "state": state, "terminal": terminal}
    training = recipe and trained(start, recipe, settings, **options)
    save(clear_folder(manifest), start)
    write_manifest(
        manifest,
        **{name: origin[name] for name in ("task", "source")},
        **named(settings.model),
        recipe=recipe,
        **settings.changes.facts(),
        distill=settings.distill,
        qat=learnt_ranges(settings.qat, training),
        training=training,
        **describe_classifier(start.model),
        **start.input_fields,
    )
    if state:
        state.clear()


def start_of(
    source: Path | str,
    data: Path | str,
    recipe: Recipe | None,
    settings: TrainingSettings,
    teacher: Path | str | None,
) -> Start:
    """Return what `load_start` does with the changes and the teacher of a training."""
    teaching = read_teaching(teacher, settings.distill) if teacher and settings.distill else None
    return load_start(
        source,
        data,
        recipe,
        changes=settings.changes,
        names=settings.labels,
        teaching=teaching,
        seed=settings.seed,
        may_get_head=settings.qat is None,
    )


def fine_tuning(qat: Recipe | None) -> Callable[..., Any]:
    """Return `fine_tune`, or with a recipe of `qat` what trains with quantized values."""
    if qat is None:
        return fine_tune
    return import_module(QUANTIZATION_AWARE.replace("/", ".")).fine_tune_quantized


def learnt_ranges(qat: Recipe | None, training: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the scheme, and the ranges that the training learnt, which are taken out of it."""
    if qat is None or training is None:
        return None
    names = [name for name in ("ranges", "outputs") if name in training]
    return {"scheme": qat["scheme"], **{name: training.pop(name) for name in names}}


def trained(
    start: Start, recipe: Recipe, settings: TrainingSettings, **options: Any
) -> dict[str, Any]:
    """Train the model of `start`; return what the manifest holds of the training.

    `options` are those of `fine_tune`.
    """
    subject, train = start.subject(recipe), fine_tuning(settings.qat)
    history, properties = train(subject, recipe, device=settings.device, **options)
    return {**properties, **reproducible_results(history, subject)}


def state_of(settings: TrainingSettings, files: list[Any], start: Start) -> TrainingState | None:
    """Return the saved state of a training from `files`, of the model of `start`, if any."""
    if settings.state is None:
        return None
    recipe = settings.asked and whole_recipe(settings.asked, settings.seed)
    # other neurons of the same number are other weights
    changes = [dict(settings.changes.prune), settings.distill]
    key = [files, recipe, repr(start.model), changes, settings.threads, settings.device]
    return TrainingState(settings.state, digest([*key, settings.provenance]))


def describe_classifier(model: Any) -> dict[str, Any]:
    """Return labels, number of parameters and architecture of a classifier."""
    return {
        "labels": [model.config.id2label[index] for index in range(model.config.num_labels)],
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "architecture": type(model).__name__,
    }


def reproducible_results(history: History, subject: Subject) -> dict[str, Any]:
    """Return the reproducible results of a training run, and how many of its texts were cut."""
    epochs = [{name: epoch[name] for name in ("loss", "accuracy")} for epoch in history.epochs]
    return {
        "losses": average_tenths(history.losses),
        "epochs": epochs,
        "micro_batches": history.micro_batches,
        "truncation": subject.truncation,
    }


def save(folder: Path, start: Start) -> None:
    """Write config.json, weights, tokenizer or image processor, without paths of this machine."""
    start.model.config._name_or_path = ""
    with storage_errors(folder):
        start.model.save_pretrained(folder)
        start.save(folder)
