"""What a request takes besides the call: to prepare its inputs, and to name its answers.

A faster engine makes none of that faster, so it limits the whole request (G. Amdahl, AFIPS 1967).
"""

import os
from bisect import bisect_left
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.inputs.arrays import Arrays, stack
from tightrope.inputs.encode import Example, load_encoder, read_split
from tightrope.inputs.timing_batches import TIMING_EXAMPLES
from tightrope.machine.cores import pinned_processors
from tightrope.measure.profile.calls import mean_call
from tightrope.measure.settings import Shape

# seconds of naming answers, which take microseconds
FINISH_S = 0.05


def around_calls(
    checkpoint: Path, data: Path, shapes: Sequence[Shape], threads: int
) -> list[dict[str, float | None]]:
    """Return, in a child, `prepare_s` and `finish_s` of a request of each shape, in seconds.

    The child is pinned as engines are. It is to be forked before this process tokenizes: tokenizers
    uses no threads in a process that was forked after it used some. `prepare_s` is None for random
    inputs, which are arrays.
    """
    os.sched_setaffinity(0, pinned_processors(threads))
    examples = read_split(data)[:TIMING_EXAMPLES]
    labels = read_manifest(checkpoint, CheckpointManifest)["labels"]
    return [
        {
            "prepare_s": prepare_s(checkpoint, examples, shape),
            "finish_s": finish_s(labels, shape["batch"]),
        }
        for shape in shapes
    ]


def prepare_s(checkpoint: Path, examples: Sequence[Example], shape: Shape) -> float | None:
    """Return the seconds from raw examples to the arrays of a request."""
    if "random" in examples[0]:
        return None
    if "sequence" in shape:
        given, prepare = of_texts(checkpoint, examples, shape)
    else:
        given, prepare = of_images(checkpoint, examples, shape)
    return mean_call(prepare, given)


Prepared = tuple[list[Example], Callable[[list[Example]], Arrays]]


def of_images(checkpoint: Path, examples: Sequence[Example], shape: Shape) -> Prepared:
    """Return images, encoded as in their files, and a function that decodes and stacks them."""
    encode = load_encoder(checkpoint, max_sequence=0)
    given = [examples[number % len(examples)] for number in range(shape["batch"])]
    return given, lambda images: stack(encode(images))


def of_texts(checkpoint: Path, examples: Sequence[Example], shape: Shape) -> Prepared:
    """Return texts that fill the shape, and a function that tokenizes, pads and stacks them."""
    tokens = shape.get("tokens") or shape["sequence"]
    encode = load_encoder(checkpoint, max_sequence=tokens)
    texts = [str(example["text"]) for example in examples]

    def length(text: str) -> int:
        return len(encode([{"text": text}])[0]["input_ids"])

    given: list[Example] = [
        {"text": filling(joined(texts, first, tokens), tokens, length)}
        for first in range(shape["batch"])
    ]
    return given, lambda requests: stack(encode(requests), sequence=shape["sequence"])


def joined(texts: Sequence[str], first: int, count: int) -> str:
    """Return `count` texts in one, from text `first` on and round again."""
    return " ".join(texts[(first + number) % len(texts)] for number in range(count))


def filling(text: str, tokens: int, length: Callable[[str], int]) -> str:
    """Return the shortest beginning of `text` of which `length` is `tokens`, else all of it.

    `length` tells the tokens of a text, cut at `tokens`.
    """
    end = tokens
    while end < len(text) and length(text[:end]) < tokens:
        end *= 2
    return text[: bisect_left(range(end), tokens, key=lambda size: length(text[:size]))]


def finish_s(labels: Sequence[str], batch: int) -> float:
    """Return the seconds from the logits of a request to its labels."""
    logits = np.random.default_rng(0).standard_normal((batch, len(labels)), dtype=np.float32)
    return mean_call(lambda given: named(given, labels), logits, seconds=FINISH_S)


def named(logits: Any, labels: Sequence[str]) -> list[tuple[str, float]]:
    """Return the label of each row of logits, [batch, classes], and its probability by softmax."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares = powers / powers.sum(axis=-1, keepdims=True)
    best = shares.argmax(axis=-1)
    return [
        (labels[index], float(row[index])) for index, row in zip(best.tolist(), shares, strict=True)
    ]
