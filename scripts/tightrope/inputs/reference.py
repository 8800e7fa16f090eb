"""Compare the prepared model with what was brought: one example at a time, in its own library.

What the pipeline does differs in three ways, each of which must not change an answer: it encodes
with `tokenizers` and Pillow alone, pads the texts of a batch to one length, and puts several
examples into a batch.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from tightrope.errors import TightropeError, in_foreign_files
from tightrope.inputs.arrays import PIXELS, Arrays, stack
from tightrope.inputs.texts import check_tokenizer, cut_side, load_tokenizer, text_arrays
from tightrope.statistics import paired_difference

# texts of each kind: shortest, longest, of the rarest characters, at random
EACH, BATCH = 12, 16
# of the largest logit: fp32 of other operators, and of other shapes
TOLERANCE = 1e-3
# examples that show whether outputs and labels belong together
LABELLED, FEW_TOKENS = 128, 128
Answer = Callable[[Arrays], np.ndarray]


def check_prepared(
    source: str,
    folders: tuple[Path, Path],
    examples: Sequence[dict[str, Any]],
    answer: Answer,
    reference: Answer,
    *,
    vocabulary: int | None,
    longest: int | None,
    terminal: TextIO,
) -> int:
    """Return for how many of the examples the prepared model does what the reference does.

    As `check_reference`, or `check_images` where there is no `vocabulary`, of so many tokens.
    """
    own = {"answer": answer, "reference": reference}
    if vocabulary is None:
        return check_images(source, folders, examples, **own)
    texts = [one["text"] for one in examples]
    check_tokenizer(source, folders[1], texts, vocabulary, terminal)
    return check_reference(source, folders, texts, longest=longest, **own)


def check_reference(
    source: str,
    folders: tuple[Path, Path],
    texts: Sequence[str],
    *,
    longest: int | None,
    answer: Answer,
    reference: Answer,
) -> int:
    """Return for how many of the texts the prepared model does what the reference does.

    `folders` hold the files that were brought and the prepared tokenizer; `longest` is the token
    limit of the model. `answer` and `reference` give logits [batch, classes] of the prepared model
    and of the one that was brought, whose outputs may have another order. Raises TightropeError
    that says which of encoding, model, padding and batch changes ids or logits.
    """
    brought, prepared = folders
    if not texts or not (prepared / "tokenizer.json").is_file():
        return 0
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    with in_foreign_files(f"{source}: its tokenizer cannot be loaded", "save it again"):
        if any((brought / f"{name}.json").is_file() for name in ("tokenizer_config", "config")):
            theirs = AutoTokenizer.from_pretrained(brought, trust_remote_code=False)
        else:
            file, side = str(brought / "tokenizer.json"), cut_side(brought)
            theirs = PreTrainedTokenizerFast(tokenizer_file=file, truncation_side=side)
    chosen = telling(texts)
    most = max(len(theirs(text)["input_ids"]) for text in chosen)
    cut = min(longest or most, max(8, 3 * most // 4))  # so that the longest are cut
    ours = load_tokenizer(prepared / "tokenizer.json", cut)
    rows = [one.ids for one in ours.encode_batch(chosen)]
    for text, row in zip(chosen, rows, strict=True):
        expected = theirs(text, truncation=True, max_length=cut)["input_ids"]
        if row != expected:
            both = zip_longest(row, expected)
            place, (own, other) = next((n, two) for n, two in enumerate(both) if two[0] != two[1])
            tokens = [one if one is None else ours.id_to_token(one) for one in (own, other)]
            raise TightropeError(
                f"{source}: its tokenizer.json gives {tokens[0]!r} as token {place + 1} of "
                f"{text[:60]!r}, transformers {tokens[1]!r}; save the tokenizer again with "
                "save_pretrained"
            )
    alone = [text_arrays(row) for row in rows]
    shown = [f"{text[:60]!r}" for text in chosen]

    def padded(row: Arrays) -> Arrays:
        return {name: np.pad(one, (0, cut - len(one)))[None] for name, one in row.items()}

    order = np.argsort([len(row) for row in rows], kind="stable")
    require_answers(source, shown, alone, order, answer, reference, padded=padded)
    return len(chosen)


def check_images(
    source: str,
    folders: tuple[Path, Path],
    images: Sequence[dict[str, Any]],
    *,
    answer: Answer,
    reference: Answer,
) -> int:
    """Return for how many of the images the prepared model does what the reference does.

    As `check_reference`; an image is an example with its encoded `image` and its `name`. The pixels
    are compared with those of transformers' image processor.
    """
    from transformers import AutoImageProcessor

    from tightrope.inputs.image_settings import FILE, load_settings
    from tightrope.inputs.images import decode_rgb, pixel_values

    brought, prepared = folders
    theirs: Any = None
    if (brought / FILE).is_file():  # else the model says only the size
        with in_foreign_files(f"{source}: its image processor cannot be loaded", "save it again"):
            theirs = AutoImageProcessor.from_pretrained(brought, backend="pil")
    settings, alone = load_settings(prepared), []
    by_size = sorted(images, key=lambda one: len(one["image"]))
    drawn = random.Random(0).sample(by_size, min(2 * EACH, len(by_size)))
    kinds = (by_size[:EACH], by_size[-EACH:], drawn)
    chosen = list({one["name"]: one for kind in kinds for one in kind}.values())
    for one in chosen:
        pixels = pixel_values(one["image"], settings, name=one["name"])
        if theirs is not None:
            image = decode_rgb(one["image"], name=one["name"])
            expected = np.asarray(theirs(image, return_tensors="np")[PIXELS][0])
            limit = TOLERANCE * np.abs(expected).max()
            if pixels.shape != expected.shape or np.abs(pixels - expected).max() > limit:
                raise TightropeError(
                    f"{source}: {one['name']} becomes other pixels than transformers makes of it; "
                    "save the image processor again"
                )
        alone.append({PIXELS: pixels})
    if chosen:
        shown = [one["name"] for one in chosen]
        require_answers(source, shown, alone, np.arange(len(alone)), answer, reference)
    return len(chosen)


def require_answers(
    source: str,
    shown: Sequence[str],
    alone: Sequence[Arrays],
    order: np.ndarray,
    answer: Answer,
    reference: Answer,
    *,
    padded: Callable[[Arrays], Arrays] | None = None,
) -> None:
    """Raise TightropeError where a model answers otherwise than the reference does.

    It is asked for each of the examples `alone`, with padding, and in batches in this `order`.
    """
    expected = np.concatenate([reference(stack([row])) for row in alone])
    if not np.isfinite(expected).all():
        raise TightropeError(f"{source}: its logits are no numbers (NaN, infinity); save it again")
    limit = TOLERANCE * np.abs(expected).max()

    def require(found: np.ndarray, why: str) -> None:
        worst = np.abs(np.sort(found) - np.sort(expected)).max(axis=1)
        if worst.max() > limit:
            raise TightropeError(
                f"{source}: {why}: logits of {shown[int(worst.argmax())]} differ by "
                f"{worst.max():.2g} from those of it alone in its own library"
            )

    same = answer is reference  # of a model that is trained here
    by_one = expected if same else np.concatenate([answer(stack([row])) for row in alone])
    require(by_one, "the prepared model is not the one that was brought, or answers at random")
    if padded:
        found = np.concatenate([answer(padded(row)) for row in alone])
        require(found, "padding changes its answers")
    together = np.empty_like(by_one)
    for start in range(0, len(order), BATCH):
        batch = order[start : start + BATCH]
        together[batch] = answer(stack([alone[int(index)] for index in batch]))
    require(together, "other examples of a batch change its answers")


def better_order(
    source: str,
    folder: Path,
    examples: Sequence[dict[str, Any]],
    labels: Sequence[str],
    answer: Answer,
    order: Sequence[int],
    *,
    longest: int | None,
    terminal: TextIO,
) -> str | None:
    """Tell, and return, which order of the outputs surely gives more right answers; None for none.

    Of the first LABELLED examples one half chooses the order of the most right answers, the other
    half decides between it and `order`, the output of each of `labels`. `folder` holds the prepared
    tokenizer or image processor; a text has at most `longest` tokens.
    """
    from scipy.optimize import linear_sum_assignment

    labelled = [one for one in examples[:LABELLED] if one.get("label") is not None]
    known = np.array([one["label"] for one in labelled])
    if len(known) < LABELLED // 2 or len(set(known)) < 2:
        return None
    rows = encoded(folder, labelled, longest)
    predicted = np.concatenate([answer(stack([row])) for row in rows]).argmax(1)
    counts = np.zeros((len(order), len(order)))
    np.add.at(counts, (known[::2], predicted[::2]), 1)
    counts[np.arange(len(order)), order] += 0.5  # where examples do not tell, as it is
    best = linear_sum_assignment(counts, maximize=True)[1]
    right, now = (np.asarray(one)[known[1::2]] == predicted[1::2] for one in (best, order))
    gained, lost = int((right & ~now).sum()), int((now & ~right).sum())
    if paired_difference(gained, lost, len(right)).low <= 0:
        return None
    words = (
        f"of {len(right)} examples {now.sum()} have the right answer, {right.sum()} would with "
        f"labels: [{', '.join(labels[index] for index in np.argsort(best))}]; set that key if this "
        "is the order of the outputs"
    )
    print(f"{source}: {words}", file=terminal)
    return words


def encoded(
    folder: Path, examples: Sequence[dict[str, Any]], longest: int | None
) -> Iterator[Arrays]:
    """Yield the arrays of each text or image, by the files in the folder; texts are cut short."""
    if "text" in examples[0]:
        tokens = min(FEW_TOKENS, longest or FEW_TOKENS)
        tokenizer = load_tokenizer(folder / "tokenizer.json", tokens)
        yield from (text_arrays(tokenizer.encode(one["text"]).ids) for one in examples)
        return
    from tightrope.inputs.image_settings import load_settings
    from tightrope.inputs.images import EncodedImages

    yield from EncodedImages(examples, load_settings(folder))


def telling(texts: Sequence[str]) -> list[str]:
    """Return distinct texts: the shortest, the longest, those of the rarest characters, others."""
    counts = Counter(character for text in texts for character in set(text))
    by_length = sorted(dict.fromkeys(texts), key=len)
    by_rarity = sorted(by_length, key=lambda text: min(map(counts.__getitem__, text), default=0))
    drawn = random.Random(0).sample(by_length, min(EACH, len(by_length)))
    kinds = (by_length[:EACH], by_length[-EACH:], by_rarity[:EACH], drawn)
    return list(dict.fromkeys(text for kind in kinds for text in kind))
