"""What is trained: a model with its examples, texts or images, and how examples become batches."""

import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from torch.utils.data import Subset
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import LabelsManifest, SourceManifest
from tightrope.errors import TightropeError, in_foreign_files
from tightrope.inputs.arrays import Arrays, stack
from tightrope.inputs.encode import Example, read_split
from tightrope.inputs.image_settings import load_settings, save_settings
from tightrope.inputs.images import EncodedImages
from tightrope.inputs.texts import (
    Truncation,
    require_known,
    require_sequence,
    text_arrays,
    truncated,
)
from tightrope.model.classifier import load_classifier
from tightrope.model.config import positions
from tightrope.model.pruning import Changes
from tightrope.signature import IMAGE
from tightrope.training.recipe import Recipe
from tightrope.training.step import LABELS
from tightrope.training.teaching import Teaching

# batches per window that is sorted by length: saves padding, but keeps examples mixed
WINDOW = 32
# fraction of the train split held out for validation if the recipe sets `validate`
VALIDATION_FRACTION = 0.1
# padding on each side before the random crop, as a fraction of the image's side
MARGIN = 1 / 8
# a split of at most this size is kept decoded; a larger split is decoded in every epoch
KEPT_BYTES = 2**30
SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = 8000
Batch = list[int]
Augment = Callable[[Arrays, np.random.Generator], Arrays]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Subject:
    """A model and its training examples.

    `rows` are the arrays of one example each and may be created on access; `labels` are int64
    [rows]; `unit` names a row, in the plural; `lengths` are token counts, None if all rows have one
    shape. `prepare(model, device)` sets up the layers for training, `augment` changes a row at
    random each time it is drawn, `truncation` is how many texts were cut, None for images.
    `teaching` is what a teacher says of the rows, if there is one.
    """

    model: Any
    rows: Sequence[Arrays]
    labels: np.ndarray
    unit: str
    lengths: Sequence[int] | None
    prepare: Callable[[Any, str], None]
    augment: Augment | None = None
    truncation: Truncation | None = None
    teaching: Teaching | None = None

    def part(self, indices: Sequence[int]) -> "Subject":
        """Return a copy restricted to these rows."""
        return replace(
            self,
            rows=Subset(self.rows, indices),  # type: ignore[arg-type]  # a sequence but for slices
            labels=self.labels[list(indices)],
            lengths=None if self.lengths is None else [self.lengths[index] for index in indices],
            teaching=self.teaching and self.teaching.part(indices),
        )

    def batch(
        self, indices: Sequence[int], generator: np.random.Generator | None = None
    ) -> tuple[Arrays, Arrays]:
        """Return inputs and targets of these rows, the inputs augmented with `generator`.

        Targets are `labels`, int64 [batch], and what the `teaching` has of them.
        """
        rows = [self.rows[index] for index in indices]
        if self.augment is not None and generator is not None:
            rows = [self.augment(row, generator) for row in rows]
        targets = {} if self.teaching is None else self.teaching.batch(indices)
        return stack(rows), {LABELS: self.labels[list(indices)], **targets}

    def shape(self, indices: Sequence[int]) -> tuple[int, ...]:
        """Return a key that identifies the shape of a batch of these rows."""
        if self.lengths is None:
            return (len(indices),)
        return len(indices), max(self.lengths[index] for index in indices)


def text_subject(
    model: Any, tokenizer: Any, examples: Sequence[Example], *, sequence: int
) -> Subject:
    """Return labelled texts truncated to `sequence` tokens; batches pad to their longest text.

    `tokenizer` is a fast one of transformers.
    """
    backend: Tokenizer = tokenizer.backend_tokenizer
    backend.no_padding()
    backend.enable_truncation(sequence, direction=tokenizer.truncation_side)
    encoded = backend.encode_batch([example["text"] for example in examples])
    require_known("the tokenizer", encoded, model.config.vocab_size)
    rows = [text_arrays(item.ids) for item in encoded]
    return Subject(
        model=model,
        rows=rows,
        labels=np.array([example["label"] for example in examples]),
        unit="texts",
        lengths=[len(row["input_ids"]) for row in rows],
        prepare=prepare_text_layers,
        truncation=Truncation(texts=len(rows), truncated=truncated(encoded), max_sequence=sequence),
    )


def prepare_text_layers(model: Any, device: str) -> None:
    """Set up the layers for a short training run; the weights stay as they are.

    Dropout is off: in a single epoch it cost 2 points of accuracy, and time. On a CPU attention is
    eager, because with the fused kernel a step takes 1.5 times as long.
    """
    model.eval()
    if device == "cpu":
        model.set_attn_implementation("eager")


def image_subject(
    model: Any, rows: Sequence[Arrays], labels: np.ndarray, *, augment: Augment | None = None
) -> Subject:
    """Labelled images: each row has `pixel_values`, float32 [3, height, width], all of one size."""
    return Subject(
        model=model,
        rows=rows,
        labels=np.asarray(labels, dtype=np.int64),
        unit="images",
        lengths=None,
        prepare=lambda trained, _: trained.train(),
        augment=augment,
    )


def flip_crop(row: Arrays, generator: np.random.Generator) -> Arrays:
    """Shift the image by up to an eighth of its side, and mirror it with probability 0.5.

    `pixel_values` are float32 [3, height, width], contiguous before and after. Padding is zero, the
    mean of normalized pixels (He et al. 2016, "Deep Residual Learning for Image Recognition", 4.2,
    with 4 of 32 pixels).
    """
    image = row["pixel_values"]
    height, width = image.shape[1:]
    down, right = round(MARGIN * height), round(MARGIN * width)
    padded = np.pad(image, ((0, 0), (down, down), (right, right)))
    top, left = generator.integers(0, 2 * down + 1), generator.integers(0, 2 * right + 1)
    crop = padded[:, top : top + height, left : left + width]
    mirrored = crop[:, :, ::-1] if generator.random() < 0.5 else crop
    return {**row, "pixel_values": np.ascontiguousarray(mirrored)}


# keys are the names in the configuration
AUGMENTATIONS = {"off": None, "flip_crop": flip_crop}


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
    if origin["task"] == IMAGE:
        start = start_of_images(model, Path(source), examples)
    else:
        known = model, Path(source), origin["source"], examples, recipe
        start = start_of_texts(*known, texts=material["labels"] is not None, teaching=teaching)
    if teaching is None:
        return start

    def subject(recipe: Recipe) -> Subject:
        plain = start.subject(recipe)
        teaching.check(type(model).__name__, material["labels"], plain.rows)
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
    teaching: Teaching | None,
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
    fields = {"vocabulary": model.config.vocab_size, "max_sequence": token_limit}

    def subject(training_recipe: Recipe) -> Subject:
        return text_subject(model, tokenizer, examples, sequence=training_recipe["sequence"])

    return Start(model, fields, lambda folder: save_tokenizer(tokenizer, folder), subject)


def start_of_images(model: Any, source: Path, examples: Sequence[Example]) -> Start:
    """Start for images; the settings of the image processor fix the input size."""
    settings = load_settings(source.parent)

    def subject(training_recipe: Recipe) -> Subject:
        rows: Sequence[Arrays] = EncodedImages(examples, settings)
        if sum(array.nbytes for array in rows[0].values()) * len(rows) <= KEPT_BYTES:
            rows = list(rows)
        labels = np.array([example["label"] for example in examples])
        augment = AUGMENTATIONS[training_recipe["augmentation"]]
        return image_subject(model, rows, labels, augment=augment)

    input_fields = {"height": settings.height, "width": settings.width, "max_sequence": None}
    return Start(model, input_fields, lambda folder: save_settings(folder, settings), subject)


def load_tokenizer(
    source: Path, name: str, examples: Sequence[Example], config: Any, *, texts: bool
) -> Any:
    """Load the fast tokenizer next to `source`, else train one on the examples.

    Returns None without tokenizer files if the data are no `texts`, but random tokens.
    """
    files = [*source.parent.glob("*token*.json"), *source.parent.glob("vocab*")]
    if files or any(source.parent.glob("*.model")):
        with in_foreign_files(f"{name}: its tokenizer cannot be loaded", "save it again"):
            tokenizer = AutoTokenizer.from_pretrained(
                source.parent, trust_remote_code=False, use_fast=True
            )
        if not tokenizer.is_fast:
            raise TightropeError(
                f"{name}: has no tokenizer.json, and none can be made of its files"
            )
        return tokenizer
    if not texts:
        return None
    if not name.startswith("scratch:"):
        raise TightropeError(f"{name}: has no tokenizer; put its tokenizer.json into the folder")
    trained = train_tokenizer(
        (example["text"] for example in examples), vocabulary=config.vocab_size
    )
    roles = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    tokens = dict(zip(roles, SPECIAL_TOKENS, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=trained, **tokens)


def save_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Write the tokenizer, if any, without padding, truncation or a path of this machine."""
    if tokenizer is not None:
        tokenizer.name_or_path = ""
        tokenizer.backend_tokenizer.no_padding()
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.save_pretrained(folder)


def train_tokenizer(texts: Iterable[str], *, vocabulary: int) -> Tokenizer:
    """Train a lower-casing WordPiece tokenizer of at most `vocabulary` tokens.

    The vocabulary is the characters of the texts, then the most frequent words. The trainers of
    `tokenizers` are not used, because their results differ from run to run.
    """
    normalizer = normalizers.BertNormalizer(lowercase=True)
    splitter = pre_tokenizers.BertPreTokenizer()
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text)))
    characters = sorted({character for word in counts for character in word})
    words = sorted(counts, key=lambda word: (-counts[word], word))
    pieces = [*SPECIAL_TOKENS, *characters, *(f"##{character}" for character in characters), *words]
    tokens = list(dict.fromkeys(pieces))[: min(vocabulary, VOCABULARY)]
    model = models.WordPiece({piece: i for i, piece in enumerate(tokens)}, unk_token="[UNK]")
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = splitter
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(SPECIAL_TOKENS)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )
    return tokenizer


def draw_epochs(
    count: int, lengths: Sequence[int] | None, *, size: int, epochs: float, seed: int
) -> Iterator[list[Batch]]:
    """Yield each epoch's batches of indices of `count` examples; the last epoch may be partial.

    With `lengths`, batches hold examples of similar length, in shuffled order; without, examples
    are shuffled. The last batch of a window or an epoch may be smaller than `size`.
    """
    generator = random.Random(seed)
    remaining = max(1, round(epochs * count))
    while remaining > 0:
        order = generator.sample(range(count), count)[:remaining]
        remaining -= len(order)
        if lengths is None:
            yield chunks(order, size)
            continue
        batches: list[Batch] = []
        for window in chunks(order, size * WINDOW):
            similar = chunks(sorted(window, key=lambda i: (lengths[i], i)), size)
            generator.shuffle(similar)
            batches += similar
        yield batches


def chunks(order: list[int], size: int) -> list[Batch]:
    """Split `order` into chunks of `size`; the last may be shorter."""
    return [order[start : start + size] for start in range(0, len(order), size)]


def split_micro_batches(batch: Batch, micro_batches: int) -> list[Batch]:
    """Split a batch into that many micro-batches of about equal size, at most one per example."""
    micro_batches = min(micro_batches, len(batch))
    edges = [len(batch) * number // micro_batches for number in range(micro_batches + 1)]
    return [batch[low:high] for low, high in pairwise(edges)]


def draw_validation(count: int, seed: int) -> tuple[list[int], list[int]]:
    """Split `count` indices into train and validation; the seed draws a tenth for validation."""
    size = max(1, round(VALIDATION_FRACTION * count))
    validation = set(random.Random(f"{seed} judged").sample(range(count), size))
    return [index for index in range(count) if index not in validation], sorted(validation)


def prefetched(tasks: Iterable[Callable[[], Result]], *, ahead: int) -> Iterator[Result]:
    """Yield the results of `tasks` in order; up to `ahead` tasks run in threads in advance.

    With 0, each runs when its result is requested. Exceptions are raised at their position.
    """
    if not ahead:
        yield from (task() for task in tasks)
        return
    remaining = iter(tasks)
    with ThreadPoolExecutor(ahead) as pool:
        waiting = deque(pool.submit(task) for task in islice(remaining, ahead))
        while waiting:
            result = waiting.popleft().result()
            waiting += [pool.submit(task) for task in islice(remaining, 1)]
            yield result
