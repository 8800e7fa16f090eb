"""Train or convert a source checkpoint into the classifier that every variant is built from."""

from pathlib import Path
from typing import Any, TextIO

from tightrope.artifacts.files import digest, storage_errors
from tightrope.artifacts.manifest import clear_folder, read_manifest, write_manifest
from tightrope.checkpoint.source import importer_of
from tightrope.training.loop import Course, fine_tune
from tightrope.training.progress import averaged
from tightrope.training.recipe import Recipe, whole_recipe
from tightrope.training.start import Start, load_start
from tightrope.training.state import TrainingState
from tightrope.training.step import prepare_device


def train_model(
    manifest: Path | str,
    *,
    source: Path | str,
    data: Path | str,
    recipe: Recipe | None,
    inputs: dict[str, str],
    activation: str | None = None,
    threads: int,
    seed: int,
    terminal: TextIO,
    device: str = "cpu",
    state: Path | str | None = None,
    provenance: Any = None,
    parts: int = 1,
) -> None:
    """Write the fp32 classifier, its tokenizer or image processor, and last its `manifest`.

    All files are in the folder of `manifest`. With a recipe, the checkpoint of manifest `source` is
    fine-tuned on `device` on the train split of manifest `data`; without a recipe it is only
    converted. Results are byte-identical on the same machine with the same number of threads.
    Progress lines go to `terminal`. An ONNX file is kept as it is; `inputs` maps to its own input
    names. `activation`, if given, replaces the checkpoint's before training.

    Folder `state` holds the last state during training. A killed run resumes from it if
    `provenance`, which identifies code and libraries, has not changed. Each batch is split into
    `parts` micro-batches.
    """
    origin, material = read_manifest(source), read_manifest(data)
    if keep := importer_of(origin["source"]):
        return keep(manifest, source=source, data=data, inputs=inputs)
    recipe = recipe and whole_recipe(recipe, seed)
    prepare_device(device, threads)
    start = load_start(source, data, recipe, activation=activation, seed=seed)
    training, last = None, None
    if recipe is not None:
        if state is not None:
            files = [origin["files"], material["files"]]
            key = [files, recipe, repr(start.model), threads, device, provenance]
            last = TrainingState(state, digest(key))
        course, facts = fine_tune(
            start.subject(recipe), recipe, device=device, terminal=terminal, state=last, parts=parts
        )
        training = {**facts, **told(course)}
    folder = clear_folder(manifest)
    save(folder, start)
    write_manifest(
        manifest,
        task=origin["task"],
        labels=[start.model.config.id2label[i] for i in range(start.model.config.num_labels)],
        parameters=sum(weight.numel() for weight in start.model.parameters()),
        architecture=type(start.model).__name__,
        source=origin["source"],
        recipe=recipe,
        activation=activation,
        training=training,
        **start.facts,
    )
    if last is not None:
        last.clear()


def told(course: Course) -> dict[str, Any]:
    """Return the reproducible results of a training run."""
    epochs = [{name: epoch[name] for name in ("loss", "accuracy")} for epoch in course.epochs]
    return {"losses": averaged(course.losses), "epochs": epochs, "parts": course.parts}


def save(folder: Path, start: Start) -> None:
    """Write config.json, weights, tokenizer or image processor, without paths of this machine."""
    start.model.config._name_or_path = ""
    with storage_errors(folder):
        start.model.save_pretrained(folder)
        start.save(folder)
