"""docs/using-an-engine.md: its programs load the engines and answer as they were measured."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_blocks import block
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.engines.load import load_engine
from tightrope.inputs.arrays import Arrays, stack
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.jobs.child import supervised
from tightrope.variants import Variant
from tiny_model import LIMITS, LONGEST, TinyModel, evaluation_rows, name_variant

pytestmark = pytest.mark.usefixtures("compiled_once")
PAGE = "using-an-engine.md"
THREADS = 2
# engines of the page and precisions to load them in
PROGRAMS = (
    ("onnxruntime", "fp32"),
    ("onnxruntime", "int8"),
    ("openvino", "fp32"),
    ("openvino", "int8"),
    ("pytorch", "fp32"),
    ("pytorch", "int8-dynamic"),
    ("torchscript", "fp32"),
    ("inductor", "fp32"),
    ("compile", "fp32"),
    ("tvm", "fp32"),
)
# A user's process, with the page's program as engine.py.
DRIVER = """
import pathlib
import sys

import numpy
from engine import load

run = load(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
for number in range(int(sys.argv[3])):
    numpy.save(f"{number}.npy", run(dict(numpy.load(f"{number}.npz"))))
print("tightrope" in sys.modules)
"""


def run_python(folder: Path, *words: str) -> str:
    """What Python prints in that working directory."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def page_answers(
    program: str, engine: Path, batches: list[Arrays], folder: Path
) -> list[np.ndarray]:
    """The logits that the page's program gives for the batches, without Tightrope."""
    folder.mkdir(exist_ok=True)
    (folder / "engine.py").write_text(block(PAGE, "python", f"{program}: engine.py"))
    (folder / "buckets.py").write_text(block(PAGE, "python", "buckets.py"))
    (folder / "driver.py").write_text(DRIVER)
    for number, batch in enumerate(batches):
        np.savez(folder / f"{number}.npz", **batch)
    words = [str(engine.parent), str(THREADS), str(len(batches))]
    told = run_python(folder, "driver.py", *words).splitlines()[-1]
    assert told == str(program == "tightrope")
    return [np.load(folder / f"{number}.npy") for number in range(len(batches))]


def own_answers(engine: Path, batches: list[Arrays]) -> list[np.ndarray]:
    run, _ = load_engine(engine, threads=THREADS)
    return [run(batch).copy() for batch in batches]


def require_equal(program: str, engine: Path, batches: list[Arrays], folder: Path) -> None:
    """Fail unless the page's program answers as the pipeline's own."""
    facts = json.loads(engine.read_text())
    assert facts["status"] == "ok", facts["reason"]
    ours = supervised(own_answers, engine, batches, limits=LIMITS)
    theirs = page_answers(program, engine, batches, folder)
    for one, other in zip(ours, theirs, strict=True):
        assert other.dtype == np.float32
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def batches(tiny: TinyModel) -> list[Arrays]:
    """One text, five that are padded to a bucket, and sixteen of up to its most tokens."""
    rows = evaluation_rows(tiny)
    return [stack(rows[:1]), stack(rows[1:6]), stack(rows[:16])]


@pytest.mark.parametrize(("engine", "precision"), PROGRAMS)
def test_a_program_of_the_page_answers_as_the_engine_that_was_measured(
    engine: str,
    precision: str,
    built: Callable[[Variant], Path],
    batches: list[Arrays],
    tmp_path: Path,
) -> None:
    require_equal(engine, built(name_variant(engine, precision)), batches, tmp_path)


def test_the_repositorys_own_function_loads_any_engine(
    repository: Path, built: Callable[[Variant], Path], batches: list[Arrays], tmp_path: Path
) -> None:
    (tmp_path / "scripts").symlink_to(repository / "scripts")
    engine = built(name_variant("onnxruntime", "fp32"))
    require_equal("tightrope", engine, batches, tmp_path)


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino", "torchscript"])
def test_a_program_of_the_page_takes_images(
    engine: str,
    tiny_images: TinyModel,
    built_images: Callable[[Variant], Path],
    tmp_path: Path,
) -> None:
    path = built_images(Variant("cpu", engine, "fp32"))
    encode = load_encoder(tiny_images.checkpoint, max_sequence=1)
    rows = encode(read_split(tiny_images.split("evaluation")))
    require_equal(engine, path, [stack(rows[:1]), stack(rows[:5])], tmp_path / "page")


def test_texts_become_the_inputs_and_logits_the_labels_that_were_measured(
    tiny: TinyModel, built: Callable[[Variant], Path], tmp_path: Path
) -> None:
    variant = name_variant("onnxruntime", "fp32")
    model = tmp_path / "artifacts/minilm-docstrings"
    shutil.copytree(built(variant).parent, model / "engines" / str(variant))
    shutil.copytree(tiny.checkpoint.parent, model / "checkpoint")
    (tmp_path / "reports").mkdir()
    others = [{"model": "another", "variant": str(variant), "threads": THREADS + 1}]
    results = [*others, {"model": model.name, "variant": str(variant), "threads": THREADS}]
    (tmp_path / "reports/summary.json").write_text(json.dumps({"results": results}))
    texts = [example["text"] for example in read_split(tiny.split("evaluation"))[:2]]
    program = block(PAGE, "python", "main.py")
    for example in ("Return the sum of the elements.", "Read a table from a file."):
        program = program.replace(json.dumps(example), json.dumps(texts.pop(0)))
    (tmp_path / "main.py").write_text(program.replace("longest=128", f"longest={LONGEST}"))
    (tmp_path / "engine.py").write_text(block(PAGE, "python", "onnxruntime: engine.py"))
    (tmp_path / "request.py").write_text(block(PAGE, "python", "request.py"))
    told = run_python(tmp_path, "main.py").splitlines()[-1]
    batch = stack(evaluation_rows(tiny)[:2])
    (logits,) = supervised(own_answers, built(variant), [batch], limits=LIMITS)
    labels = read_manifest(tiny.checkpoint, CheckpointManifest)["labels"]
    assert told == repr([labels[index] for index in logits.argmax(-1)])


def test_the_page_encodes_texts_as_the_pipeline_does(tiny: TinyModel, tmp_path: Path) -> None:
    texts = [example["text"] for example in read_split(tiny.split("evaluation"))[:20]]
    namespace: dict[str, Any] = {}
    exec(block(PAGE, "python", "request.py"), namespace)
    encode, labels = namespace["load_texts"](tiny.checkpoint.parent, 32)
    rows = load_encoder(tiny.checkpoint, max_sequence=32)(read_split(tiny.split("evaluation"))[:20])
    for name, expected in stack(rows).items():
        np.testing.assert_array_equal(encode(texts)[name], expected)
    assert labels == read_manifest(tiny.checkpoint, CheckpointManifest)["labels"]
