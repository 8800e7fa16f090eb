"""From a source checkpoint to the classifier that every variant is built from."""

from pathlib import Path
from typing import Any, TextIO

from tightrope.artifacts.files import digest, storage_errors
from tightrope.artifacts.manifest import clear_folder, read_manifest, write_manifest
from tightrope.checkpoint.source import keeper_of
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
    """Write the fp32 classifier and its tokenizer or image processor beside `manifest`, that last.

    With a recipe the checkpoint of manifest `source` is fine-tuned on `device` on the train split
    of manifest `data`; without one it is only converted. The same bytes come out on the same
    machine with the same number of threads. A line now and then goes to `terminal`. An ONNX file,
    whose own names of its inputs are `inputs`, is kept as it is. Where an `activation` is named, it
    takes the place of the checkpoint's own before anything is learned.

    In folder `state` lies the last state while it trains, to go on from after it was killed, if
    what `provenance` tells of code and libraries is still so. Each batch is learned from in so
    many `parts`.
    """
    origin, material = read_manifest(source), read_manifest(data)
    if keep := keeper_of(origin["source"]):
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
    """What of a training is the same each time that it is done."""
    epochs = [{name: epoch[name] for name in ("loss", "accuracy")} for epoch in course.epochs]
    return {"losses": averaged(course.losses), "epochs": epochs, "parts": course.parts}


def save(folder: Path, start: Start) -> None:
    """Write config.json, model.safetensors and what encodes inputs; no path of this machine."""
    start.model.config._name_or_path = ""
    with storage_errors(folder):
        start.model.save_pretrained(folder)
        start.save(folder)
