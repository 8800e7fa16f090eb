"""What the requests of a model take besides the call, measured once for all its profiles.

Their inputs are prepared and their answers named; a faster engine makes none of that faster, so it
limits the whole request (G. Amdahl, AFIPS 1967).
"""

import os
from bisect import bisect_left
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, convert, to_builtins

from tightrope.artifacts.content import write_artifact
from tightrope.artifacts.failures import read_json_or_raise
from tightrope.artifacts.manifest import identity, open_manifest, read_manifest, require_descent
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.inputs.arrays import Arrays, stack
from tightrope.inputs.encode import (
    TIMING_EXAMPLES,
    Example,
    load_encoder,
    read_split,
    timing_batches,
)
from tightrope.machine.cores import pinned_processors
from tightrope.machine.host import describe_host
from tightrope.measure.run import Shape
from tightrope.measure.timed_engine import mean_call
from tightrope.records.profile import Request

# seconds of naming answers, which take microseconds
FINISH_S = 0.05
Prepared = tuple[list[Example], Callable[[list[Example]], Arrays]]
SCHEMA = 3


def around_calls(
    checkpoint: Path, data: Path, shapes: Sequence[Shape], threads: int
) -> list[Request]:
    """Return, in a child, a request of each shape with what goes around its call.

    The child is pinned as engines are. It is to be forked before this process tokenizes: tokenizers
    uses no threads in a process that was forked after it used some.
    """
    os.sched_setaffinity(0, pinned_processors(threads))
    examples = read_split(data)[:TIMING_EXAMPLES]
    labels = read_manifest(checkpoint, CheckpointManifest)["labels"]
    found = []
    for shape in shapes:
        prepare_s = None
        if "random" not in examples[0]:
            of = of_texts if "sequence" in shape else of_images
            given, prepare = of(checkpoint, examples, shape)
            prepare_s = mean_call(prepare, given)
        seconds = {"prepare_s": prepare_s, "finish_s": finish_s(labels, shape["batch"])}
        found.append(convert({**shape, **seconds}, Request))
    return found


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

    given: list[Example] = []
    for first in range(shape["batch"]):
        # so many texts in one, from one on and round again
        several = " ".join(texts[(first + number) % len(texts)] for number in range(tokens))
        given.append({"text": filling(several, tokens, length)})
    return given, lambda requests: stack(encode(requests), sequence=shape["sequence"])


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


class Requests(Struct):
    """What `measure_requests` writes, as far as it is read, with the identity of the checkpoint."""

    checkpoint: str
    requests: list[Request]


def measure_requests(
    checkpoint: Path | str,
    data: Path | str,
    onnx: Path | str | None,
    target: Path | str,
    *,
    shapes: Sequence[Shape],
    max_sequence: int,
    threads: int,
) -> None:
    """Write, in a child, the Request of each shape, without an ONNX file without `work`.

    Raises TightropeError where the examples cannot be prepared.
    """
    files = Path(checkpoint), Path(data)
    # first: it pins this process, and measures before anything else was loaded
    requests = around_calls(*files, shapes, threads)
    if onnx is not None:
        from tightrope.measure.model_work import model_works

        batches = timing_batches(*files, list(shapes), max_sequence=max_sequence)
        works = model_works(Path(onnx), batches, threads)
        for request, work in zip(requests, works, strict=True):
            request.work = work
    made_from = identity(open_manifest(checkpoint, CheckpointManifest))
    facts = {"schema": SCHEMA, "host": describe_host(), "checkpoint": made_from}
    write_artifact(target, {**facts, "requests": to_builtins(requests)})


def read_requests(path: Path | str, checkpoint: Path | str) -> list[Request]:
    """Return what `measure_requests` wrote for a checkpoint.

    Raises WorkFailed with its reason where it failed, ArtifactError for another checkpoint.
    """
    found: Requests = read_json_or_raise(path, Requests)
    require_descent(path, found.checkpoint, checkpoint)
    return found.requests
