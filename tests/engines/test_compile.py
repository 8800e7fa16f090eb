"""torch.compile with the options of a GPU, which compiles on a CPU as well."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tightrope.artifacts.manifest import write_manifest
from tightrope.inputs.arrays import Arrays
from tightrope.jobs.child import supervised
from tightrope.signature import of_texts
from tiny_model import LIMITS

SIZES = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 50}
SIZES |= {"intermediate_size": 64, "max_position_embeddings": 16, "hidden_act": "relu"}
MEASURED, OTHER, UNKNOWN = (3, 16), (1, 16), (2, 16)
OPTIONS = {
    **{"attention": "auto", "autotune": False, "graphs": True},
    **{"buckets": {"batch": [1, 3], "sequence": [16]}, "shapes": [[*MEASURED]]},
}
ENGINE: dict[str, Any] = {
    **{"status": "ok", "variant": "cpu-compile-fp32", "precision": "fp32", "options": OPTIONS},
    **{"sources": {}, "checkpoint": None, "libraries": {}, "build_s": 1.0},
    "inputs": of_texts().facts(),
}
SETTINGS: dict[str, Any] = {"precision": "fp32", "device": "cpu", "options": OPTIONS}
# whether the sizes of a program are free (False: fixed), and the shape that it was called with
Call = tuple[bool, tuple[int, ...]]


def ids(batch: int, sequence: int) -> Arrays:
    tokens = np.arange(batch * sequence, dtype=np.int64).reshape(batch, sequence) % 50
    return {"input_ids": tokens, "attention_mask": np.ones_like(tokens)}


def recorded(
    compile: Any, calls: list[Call], module: Any, *, dynamic: bool, **settings: Any
) -> Any:
    """torch.compile, whose programs note their calls."""
    compiled = compile(module, dynamic=dynamic, **settings)

    def program(**inputs: Any) -> Any:
        calls.append((dynamic, tuple(inputs["input_ids"].shape)))
        return compiled(**inputs)

    return program


def of_build(folder: Path) -> tuple[list[Call], list[np.ndarray]]:
    """Run in a child: compile as a build does; the calls, and what PyTorch itself answers."""
    import torch
    from tightrope.engines import compile
    from tightrope.model.module import DTYPES, load_module, logits_only, runner
    from torch._inductor.utils import fresh_cache
    from transformers import BertConfig, BertForSequenceClassification

    torch.set_num_threads(1)  # as the load does: kernels are generated for a number of threads
    BertForSequenceClassification(BertConfig(**SIZES)).save_pretrained(folder)
    calls: list[Call] = []
    torch.compile = partial(recorded, torch.compile, calls)
    with fresh_cache():
        compile.compiled(folder, of_texts(), **SETTINGS)
        compile.keep_cache(folder / compile.CACHE)
    plain = runner(logits_only(load_module(folder, DTYPES["fp32"])))
    return calls, [plain(ids(*shape)) for shape in (MEASURED, OTHER)]


def of_load(folder: Path) -> tuple[list[Call], list[np.ndarray], list[str]]:
    """Run in a child: the calls, the answers, and the kernels that were compiled anew."""
    import torch
    from tightrope.engines import compile
    from torch._dynamo.exc import RecompileError
    from torch._inductor.utils import fresh_cache

    new: list[str] = []

    @contextmanager
    def watched() -> Iterator[None]:
        with fresh_cache():
            yield
            kept = (folder / compile.CACHE).stat().st_mtime
            made = Path(compile.cache_dir()).rglob("*.so")
            new.extend(one.name for one in made if one.stat().st_mtime > kept)

    calls: list[Call] = []
    torch.compile = partial(recorded, torch.compile, calls)
    compile.fresh_cache = watched
    run = compile.load(folder, threads=1, **SETTINGS)
    logits = [run(ids(*shape)) for shape in (MEASURED, OTHER)]
    with pytest.raises(RecompileError):
        run(ids(*UNKNOWN))
    return calls, logits, new


def test_each_measured_shape_has_a_program_which_a_load_takes_as_the_build_made_it(
    tmp_path: Path,
) -> None:
    """Shapes are padded to buckets, so that what compiles anything after the load is an error."""
    built, expected = supervised(of_build, tmp_path, limits=LIMITS)
    assert built == [(False, MEASURED), (True, OTHER)]
    write_manifest(tmp_path / "engine.json", **ENGINE)
    called, logits, new = supervised(of_load, tmp_path, limits=LIMITS)
    assert called == [*built, *built, (True, UNKNOWN)]
    assert new == []
    for ours, theirs in zip(logits, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
