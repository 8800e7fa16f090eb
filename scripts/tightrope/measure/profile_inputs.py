"""What is measured once for all profiles: the requests of a model, and the peaks of a machine.

The inputs of a request are prepared and its answers named; a faster engine makes none of that
faster, so it limits the whole request (G. Amdahl, AFIPS 1967). The peaks are of matrix products per
type, copies of memory, and an operator on one number.
"""

import os
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
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
from tightrope.machine.cores import let_threads_spin, pinned_processors
from tightrope.machine.host import describe_host
from tightrope.measure.run import Shape
from tightrope.measure.timed_engine import mean_call
from tightrope.records.profile import Peaks, Request

# seconds of naming answers, which take microseconds
FINISH_S = 0.05
Prepared = tuple[list[Example], Callable[[list[Example]], Arrays]]
# of the two files
REQUESTS_SCHEMA, PEAKS_SCHEMA = 3, 1
# sides of the square matrices, on a CPU and on a GPU
SIDES = {"cpu": 2048, "cuda": 8192}
# larger than any cache
COPIED_BYTES = 256 * 2**20
ROUNDS, SECONDS = 5, 0.1
TYPES = {"fp32": "float32", "tf32": "float32", "bf16": "bfloat16", "fp16": "float16"}
# compute capability from which a GPU has products in fp8
FP8_SINCE = (8, 9)


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
    facts = {"schema": REQUESTS_SCHEMA, "host": describe_host(), "checkpoint": made_from}
    write_artifact(target, {**facts, "requests": to_builtins(requests)})


def read_requests(path: Path | str, checkpoint: Path | str) -> list[Request]:
    """Return what `measure_requests` wrote for a checkpoint.

    Raises WorkFailed with its reason where it failed, ArtifactError for another checkpoint.
    """
    found: Requests = read_json_or_raise(path, Requests)
    require_descent(path, found.checkpoint, checkpoint)
    return found.requests


def measure_peaks(target: Path | str, *, device: str, threads: int) -> None:
    """Write, in a child, the peaks of this machine, on the processors of an engine."""
    os.sched_setaffinity(0, pinned_processors(threads))
    peaks = to_builtins(peaks_of(device, threads))
    write_artifact(target, {"schema": PEAKS_SCHEMA, "host": describe_host(), "peaks": peaks})


class Measured(Struct):
    """What `measure_peaks` writes, as far as it is read."""

    peaks: Peaks


def read_peaks(path: Path | str) -> Peaks:
    """Return what `peaks_of` returned; raise WorkFailed with its reason where it failed."""
    found: Measured = read_json_or_raise(path, Measured)
    return found.peaks


def peaks_of(device: str, threads: int) -> Peaks:
    """Return what this machine reaches at best; each is the best of `ROUNDS` means."""
    let_threads_spin()
    import torch

    torch.set_num_threads(threads)
    side = SIDES[device]
    with torch.inference_mode():
        rates = {name: operations_per_s(name, device, side) for name in types_on(device)}
        source = torch.ones(COPIED_BYTES // 4, device=device)
        target = torch.empty_like(source)
        copy_s = seconds_of(partial(target.copy_, source))
        number = torch.zeros(1, device=device)
        return Peaks(
            device=device,
            threads=threads,
            operations_per_s=rates,
            copy_bytes_per_s=2 * COPIED_BYTES / copy_s,
            smallest_operator_s=seconds_of(partial(number.add_, 1)),
        )


def types_on(device: str) -> tuple[str, ...]:
    """Return the types whose products are timed: fp16 is emulated on most CPUs, bf16 on some."""
    import torch

    if device == "cuda":
        has_fp8 = torch.cuda.get_device_capability() >= FP8_SINCE
        return ("fp32", "tf32", "bf16", "fp16", "int8", *(("fp8",) if has_fp8 else ()))
    # oneDNN refuses products in bf16 without AVX-512 or AVX-NE-CONVERT
    in_bf16 = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return ("fp32", "bf16", "int8") if in_bf16 else ("fp32", "int8")


def operations_per_s(name: str, device: str, side: int) -> float:
    """Return the operations per second of products of two square matrices of that type."""
    import torch

    if device == "cuda":
        torch.set_float32_matmul_precision("high" if name == "tf32" else "highest")
    make = product_on_gpu if device == "cuda" else product_on_cpu
    return 2 * side**3 / seconds_of(make(name, side))


def product_on_gpu(name: str, side: int) -> Callable[[], Any]:
    """Return a product on the GPU; in 8 bits its right side has columns, as cuBLASLt wants it."""
    import torch

    left, right = (torch.randn(side, side, device="cuda") for _ in range(2))
    if name == "int8":
        return partial(torch._int_mm, (20 * left).to(torch.int8), (20 * right).to(torch.int8).t())
    if name == "fp8":
        one = torch.ones((), device="cuda")
        narrow = (left.to(torch.float8_e4m3fn), right.to(torch.float8_e4m3fn).t())
        return partial(torch._scaled_mm, *narrow, one, one, out_dtype=torch.bfloat16)
    dtype = getattr(torch, TYPES[name])
    return partial(torch.mm, left.to(dtype), right.to(dtype))


def product_on_cpu(name: str, side: int) -> Callable[[], Any]:
    """Return a product on the CPU, with weights packed before."""
    import torch

    left, right = torch.randn(side, side), torch.randn(side, side)
    if name == "int8":
        left, right = (20 * left).to(torch.int8), (20 * right).to(torch.int8)
        packed = torch.ops.onednn.qlinear_prepack(right, [side, side])
        scales, points = torch.ones(side), torch.zeros(side, dtype=torch.int64)
        rest: tuple[Any, ...] = (None, 1.0, 0, torch.float32, "none", [], "")
        unsigned = left.abs().to(torch.uint8)
        linear = torch.ops.onednn.qlinear_pointwise
        return partial(linear, unsigned, 1.0, 0, packed, scales, points, *rest)
    dtype = getattr(torch, TYPES[name])
    left, right = left.to(dtype), right.to(dtype)
    packed = torch.ops.mkldnn._reorder_linear_weight(right, side)
    return partial(torch.ops.mkldnn._linear_pointwise, left, packed, None, "none", [], "")


def seconds_of(call: Callable[[], Any]) -> float:
    """Return the seconds of a call: the smallest of `ROUNDS` means over about `SECONDS`.

    A call on a GPU returns before it is done, so that their number is known beforehand.
    """
    import torch
    from torch.utils.benchmark import Timer  # it waits for the GPU, where there is one

    timer = Timer("call()", globals={"call": call}, num_threads=torch.get_num_threads())
    calls = max(1, int(SECONDS / timer.timeit(1).mean))
    return min(timer.timeit(calls).mean for _ in range(ROUNDS))
