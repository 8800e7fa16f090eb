"""An engine that is swapped after it was verified is never opened, by no runtime."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tightrope.engines import load
from tightrope.inputs.arrays import Arrays, stack
from tightrope.jobs.child import supervised
from tightrope.variants import Variant
from tiny_model import LIMITS, TinyModel, evaluation_rows, name_variant

# compile loads as pytorch does; the others need a GPU
ENGINES = ("pytorch", "torchscript", "inductor", "onnxruntime", "openvino", "tvm")


def swap(manifest: Path) -> None:
    """Write into every file of the folder, in place: also an open file or a hard link has it."""
    for file in manifest.parent.rglob("*"):
        if file.is_file():
            with file.open("r+b") as stream:
                stream.write(b"\0" * file.stat().st_size)


def answer(manifest: Path, batch: Arrays) -> np.ndarray:
    """Run in a child: logits of the batch."""
    return load.load_engine(manifest, threads=1)[0](batch).copy()


def answer_though_swapped(manifest: Path, batch: Arrays) -> np.ndarray:
    """Run in a child: the same, while another process writes as the runtime is imported."""
    own = load.engine_module

    def swap_and_import(engine: str) -> Any:
        swap(manifest)
        return own(engine)

    load.engine_module = swap_and_import
    return answer(manifest, batch)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_that_is_swapped_while_its_runtime_is_imported_is_not_run(
    engine: str, tiny: TinyModel, built: Callable[[Variant], Path], tmp_path: Path
) -> None:
    manifest = built(name_variant(engine, "fp32"))
    batch = stack(evaluation_rows(tiny)[:3])
    victim = tmp_path / "victim" / manifest.name
    victim.parent.mkdir()
    for file in manifest.parent.iterdir():
        (victim.parent / file.name).write_bytes(file.read_bytes())
    expected = supervised(answer, manifest, batch, limits=LIMITS)
    found = supervised(answer_though_swapped, victim, batch, limits=LIMITS)
    assert set(victim.read_bytes()) == {0}
    np.testing.assert_array_equal(found, expected)
