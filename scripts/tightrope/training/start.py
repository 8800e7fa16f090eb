"""Starting point of a training run: model, train split, tokenizer or image processor."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import LabelsManifest, SourceManifest
from tightrope.errors import TightropeError, in_foreign_files
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.encode import Example, read_split
from tightrope.inputs.image_settings import load_settings, save_settings
from tightrope.inputs.images import EncodedImages
from tightrope.inputs.texts import require_sequence
from tightrope.model.classifier import load_classifier
from tightrope.model.config import positions
from tightrope.model.pruning import Changes
from tightrope.signature import IMAGE
from tightrope.training.examples import AUGMENTATIONS, Subject, image_subject, text_subject
from tightrope.training.recipe import Recipe
from tightrope.training.teaching import Teaching

# a split of at most this size is kept decoded; a larger split is decoded in every epoch
KEPT_BYTES = 2**30
SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = 8000


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
    return Start(
        model,
        {"vocabulary": model.config.vocab_size, "max_sequence": token_limit},
        lambda folder: save_tokenizer(tokenizer, folder),
        lambda training_recipe: text_subject(
            model, tokenizer, list(examples), sequence=training_recipe["sequence"]
        ),
    )


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
