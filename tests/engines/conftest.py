"""Engines of the tiny models, each built and asked once for all tests of them."""

import gc
import importlib
import os
import pickle
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from tightrope.engines.load import load_engine
from tightrope.inputs.arrays import Arrays, stack
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.inputs.texts import filled_batch
from tightrope.jobs.child import supervised
from tightrope.model.module import load_module
from tightrope.signature import IMAGE, TEXT
from tightrope.variants import Variant
from tiny_model import LIMITS, LONGEST, TinyModel, evaluation_rows

# CPU seconds of each in a child that imports it: tvm 1.6, compile_fx 0.8, the others 0.1 to 0.3.
# None starts a thread, as onnxruntime and sklearn do, and none changes PyTorch.
MODULES = (
    "nncf",
    "onnxslim",
    "openvino",
    "torch._inductor.compile_fx",
    "torch.export._trace",
    "torch.onnx._internal.exporter._core",
    "transformers.models.bert.modeling_bert",
    "tvm.relax.frontend.torch",
)
# else the encoding of texts starts threads, and a fork may wait for one of them for ever
os.environ["TOKENIZERS_PARALLELISM"] = "false"
MadeOnce = Callable[[str, Callable[[Path], object]], Path]
# as many of the first batches are asked of a copy of the engine too
ASKED_TWICE = 6


class Answers(NamedTuple):
    """What an engine gave for the batches, and for each of them again."""

    first: list[np.ndarray]
    again: list[np.ndarray]
    # for the first batches: of a copy in another folder, then its own, in turn
    of_two: list[tuple[np.ndarray, np.ndarray]]
    held: bool  # outputs of a call stayed as they were after later calls
    untouched: bool  # and so did the inputs


Ask = Callable[[str, Variant], Answers]


@pytest.fixture(scope="session", autouse=True)
def imported() -> None:
    """Each test runs several children; a test of what they import takes a Python of its own."""
    for name in MODULES:
        importlib.import_module(name)
    gc.freeze()


@pytest.fixture(autouse=True)
def forkable() -> Iterator[None]:
    """No test imports what starts a thread: a child that it forks may wait for that for ever."""
    before = set(sys.modules)  # with what files of other tests import
    yield
    assert not {"onnxruntime", "sklearn.ensemble"} & (sys.modules.keys() - before)


@pytest.fixture(scope="session", autouse=True)
def compiled_once() -> Iterator[None]:
    """What a build by torch.compile has compiled is found when the engine is loaded.

    The engine compiles in a cache of its own, so that its times are those of a new machine.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tightrope.engines.compile.fresh_cache", nullcontext)
        yield


@pytest.fixture(scope="session")
def batches(tiny: TinyModel, tiny_images: TinyModel) -> dict[str, list[Arrays]]:
    """Requests by task.

    Texts alone, padded, in odd sizes and of the longest sequence; all of them; at the end strange
    ones, which are one token alone and texts of all labels joined to one. One image, three,
    sixteen, and one again.
    """
    rows = sorted(evaluation_rows(tiny), key=lambda row: len(row["input_ids"]))
    short, long = rows[0], rows[-1]
    assert len(long["input_ids"]) == LONGEST
    texts = [
        stack([short]),
        stack([long]),
        stack([short], sequence=17),
        stack([rows[20]]),
        stack([rows[5], rows[40], rows[60]]),
        stack([long, short, rows[33], rows[50], rows[1], rows[70], rows[12]]),
        stack(rows[40:45], sequence=LONGEST),
        stack([short]),
        *(stack(rows[start : start + 13]) for start in range(0, len(rows), 13)),
        {name: array[None, :1] for name, array in short.items()},
        filled_batch(rows, batch=16, sequence=LONGEST),
    ]
    pictures = load_encoder(tiny_images.checkpoint, max_sequence=1)(
        read_split(tiny_images.split("evaluation"))
    )
    groups = (pictures[:1], pictures[1:4], pictures[:16], pictures[:1])
    return {TEXT: texts, IMAGE: [stack(group) for group in groups]}


def reference(folder: Path, batches: list[Arrays]) -> list[np.ndarray]:
    """Logits of the checkpoint in transformers itself, attention in its plainest form."""
    import torch

    torch.set_num_threads(1)
    kind = {"attention": "eager"} if "input_ids" in batches[0] else {}
    module = load_module(folder, torch.float32, **kind)
    tensors = [{name: torch.from_numpy(one) for name, one in batch.items()} for batch in batches]
    with torch.inference_mode():
        return [module(**one).logits.numpy() for one in tensors]


def answer(path: Path, copy: Path | None, batches: list[Arrays]) -> Answers:
    """Run in a child, which alone starts the runtime's threads."""
    run, _ = load_engine(path, threads=2)
    given = [{name: array.copy() for name, array in batch.items()} for batch in batches]
    first = [run(batch) for batch in batches]
    copies = [logits.copy() for logits in first]
    again = [run(batch).copy() for batch in batches]
    of_two = []
    if copy is not None:
        other, _ = load_engine(copy, threads=2)
        of_two = [(other(batch).copy(), run(batch).copy()) for batch in batches[:ASKED_TWICE]]
    held = all(np.array_equal(one, other) for one, other in zip(first, copies, strict=True))
    untouched = all(
        np.array_equal(batch[name], array) and batch[name].dtype == array.dtype
        for batch, copy in zip(batches, given, strict=True)
        for name, array in copy.items()
    )
    return Answers(first, again, of_two, held, untouched)


@pytest.fixture(scope="session")
def expected(
    tiny: TinyModel, tiny_images: TinyModel, batches: dict[str, list[Arrays]], made_once: MadeOnce
) -> dict[str, list[np.ndarray]]:
    """PyTorch's logits of the requests by task."""
    models = {TEXT: tiny, IMAGE: tiny_images}
    return {
        task: kept(made_once, f"expected-{task}", reference, model.checkpoint.parent, batches[task])
        for task, model in models.items()
    }


def kept(made_once: MadeOnce, name: str, work: Callable[..., object], *words: object) -> object:
    """What the work returns in a child, once for all processes of the tests."""

    def make(folder: Path) -> None:
        folder.mkdir()
        found = supervised(work, *words, limits=LIMITS)
        (folder / "answers.pickle").write_bytes(pickle.dumps(found))

    return pickle.loads((made_once(name, make) / "answers.pickle").read_bytes())


@pytest.fixture(scope="session")
def engine_of(
    built: Callable[[Variant], Path], built_images: Callable[[Variant], Path]
) -> Callable[[str, Variant], Path]:
    """From a task and a variant to its engine.json."""
    return lambda task, variant: {TEXT: built, IMAGE: built_images}[task](variant)


@pytest.fixture(scope="session")
def answers(
    engine_of: Callable[[str, Variant], Path], batches: dict[str, list[Arrays]], made_once: MadeOnce
) -> Ask:
    """From a task and a variant to its answers, each asked once."""

    def ask(task: str, variant: Variant) -> Answers:
        path = engine_of(task, variant)
        copy = None
        # torch.compile compiles anew at each load
        if variant.engine != "compile":
            folder = made_once(
                f"copy-{task}-{variant}", lambda folder: shutil.copytree(path.parent, folder)
            )
            copy = folder / path.name
        return kept(made_once, f"answers-{task}-{variant}", answer, path, copy, batches[task])  # type: ignore[return-value]  # what `answer` returns

    return ask
