"""From a source checkpoint to the classifier that every variant is built from."""

from pathlib import Path
from typing import Any, NamedTuple, TextIO

from tokenizers import Tokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from tightrope.classifier import load_classifier
from tightrope.errors import TightropeError
from tightrope.files import digest, storage_errors
from tightrope.finetuning import Course, fine_tune
from tightrope.inputs import Example, read_split
from tightrope.manifest import clear_folder, read_manifest, write_manifest
from tightrope.model_limits import positions
from tightrope.onnx_checkpoint import keep_onnx_file
from tightrope.sources.scratch import SPECIAL_TOKENS, train_tokenizer
from tightrope.text_inputs import require_sequence
from tightrope.training_recipe import Recipe, whole_recipe
from tightrope.training_report import averaged
from tightrope.training_state import TrainingState
from tightrope.training_step import prepare_device
from tightrope.training_subject import Subject, text_subject
from tightrope.variants import is_onnx

SPECIAL = dict(zip(("pad", "unk", "cls", "sep", "mask"), SPECIAL_TOKENS, strict=True))


def train_model(
    manifest: Path | str,
    *,
    source: Path | str,
    data: Path | str,
    recipe: Recipe | None,
    inputs: dict[str, str],
    threads: int,
    seed: int,
    terminal: TextIO,
    device: str = "cpu",
    state: Path | str | None = None,
    provenance: Any = None,
    parts: int = 1,
) -> None:
    """Write the fp32 classifier and its tokenizer beside `manifest`, and the manifest last.

    With a recipe the checkpoint of manifest `source` is fine-tuned on `device` on the train split
    of manifest `data`; without one it is only converted. The same bytes come out on the same
    machine with the same number of threads. A line now and then goes to `terminal`. An ONNX file,
    whose own names of its inputs are `inputs`, is kept as it is.

    In folder `state` lies the last state while it trains, to go on from after it was killed, if
    what `provenance` tells of code and libraries is still so. Each batch is learned from in so
    many `parts`.
    """
    if is_onnx(read_manifest(source)["source"]):
        return keep_onnx_file(manifest, source=source, data=data, inputs=inputs)
    recipe = recipe and whole_recipe(recipe, seed)
    prepare_device(device, threads)
    origin, material = read_manifest(source), read_manifest(data)
    start = load_start(source, data, recipe, seed=seed)
    model, training, last = start.model, None, None
    if recipe is not None:
        subject = subject_of(start, recipe, material["source"])
        if state is not None:
            files = [origin["files"], material["files"]]
            key = [files, recipe, repr(model), threads, device, provenance]
            last = TrainingState(state, digest(key))
        course, facts = fine_tune(
            subject, recipe, device=device, terminal=terminal, state=last, parts=parts
        )
        training = {**facts, **told(course)}
    folder = clear_folder(manifest)
    save(folder, model, start.tokenizer)
    write_manifest(
        manifest,
        task=origin["task"],
        labels=[model.config.id2label[i] for i in range(model.config.num_labels)],
        parameters=sum(weight.numel() for weight in model.parameters()),
        vocabulary=model.config.vocab_size,
        max_sequence=start.longest,
        architecture=type(model).__name__,
        source=origin["source"],
        recipe=recipe,
        training=training,
    )
    if last is not None:
        last.clear()


class Start(NamedTuple):
    """What a training begins with; `longest` is how many tokens the model takes, None for any."""

    model: Any
    tokenizer: Any
    examples: list[Example]
    longest: int | None


def load_start(source: Path | str, data: Path | str, recipe: Recipe | None, *, seed: int) -> Start:
    """The model of manifest `source`, its tokenizer, and the train split of manifest `data`."""
    origin, material = read_manifest(source), read_manifest(data)
    model = load_classifier(
        Path(source).parent,
        source=origin["source"],
        task=origin["task"],
        labels=material["labels"],
        new_head=recipe is not None or origin["source"].startswith("scratch:"),
        seed=recipe["seed"] if recipe else seed,
    )
    longest = check_sequence(model, origin["source"], recipe)
    examples = read_split(data, "train") if "train" in material["splits"] else []
    tokenizer = load_tokenizer(Path(source), origin["source"], examples, model.config)
    return Start(model, tokenizer, examples, longest)


def subject_of(start: Start, recipe: Recipe, source: str) -> Subject:
    """What is trained; raises TightropeError where the data `source` has no examples for it."""
    if not start.examples:
        raise TightropeError(f"{source}: no examples to train on; remove train")
    backend = start.tokenizer.backend_tokenizer
    return text_subject(start.model, backend, start.examples, sequence=recipe["sequence"])


def told(course: Course) -> dict[str, Any]:
    """What of a training is the same each time that it is done."""
    epochs = [{name: epoch[name] for name in ("loss", "accuracy")} for epoch in course.epochs]
    return {"losses": averaged(course.losses), "epochs": epochs, "parts": course.parts}


def check_sequence(model: Any, source: str, recipe: Recipe | None) -> int | None:
    """Most tokens that the model takes; raises TightropeError where the recipe wants more."""
    longest = positions(model.config.to_dict())
    limit = {"source": source, "max_sequence": longest}
    require_sequence(limit, (recipe or {}).get("sequence", 0), key="train.sequence")
    return longest


def load_tokenizer(source: Path, name: str, examples: list[Example], config: Any) -> Any:
    """The fast tokenizer beside `source`, else one trained on the examples; None for neither."""
    files = [*source.parent.glob("*token*.json"), *source.parent.glob("vocab*")]
    if files or any(source.parent.glob("*.model")):
        try:
            tokenizer = AutoTokenizer.from_pretrained(
                source.parent, trust_remote_code=False, use_fast=True
            )
        except (ValueError, ImportError, OSError) as error:
            reason = " ".join(str(error).split())
            raise TightropeError(f"{name}: its tokenizer cannot be loaded ({reason})") from error
        if not tokenizer.is_fast:
            raise TightropeError(
                f"{name}: has no tokenizer.json, and none can be made of its files"
            )
        return tokenizer
    if not examples:
        return None
    if not name.startswith("scratch:"):
        raise TightropeError(f"{name}: has no tokenizer; put its tokenizer.json into the folder")
    trained: Tokenizer = train_tokenizer(
        (example["text"] for example in examples), vocabulary=config.vocab_size
    )
    tokens = {f"{role}_token": token for role, token in SPECIAL.items()}
    return PreTrainedTokenizerFast(tokenizer_object=trained, **tokens)


def save(folder: Path, model: Any, tokenizer: Any) -> None:
    """Write config.json, model.safetensors, tokenizer.json; no path of this machine in them."""
    model.config._name_or_path = ""
    with storage_errors(folder):
        model.save_pretrained(folder)
        if tokenizer is not None:
            tokenizer.name_or_path = ""
            tokenizer.backend_tokenizer.no_padding()
            tokenizer.backend_tokenizer.no_truncation()
            tokenizer.save_pretrained(folder)
