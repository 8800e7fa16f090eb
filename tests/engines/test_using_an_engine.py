"""docs/using-an-engine.md: the programs load the engines and answer as they were measured."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from page_blocks import block
from programs import printed_in
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.encode import read_split
from tightrope.plan.job_inputs import FOLDER
from tightrope.signature import IMAGE, TEXT
from tiny_model import LONGEST, name_variant, skip_where_emulated

PAGE = "using-an-engine.md"
OURS = Path(__file__).parents[2] / "scripts" / FOLDER
# of `answers`
THREADS = 2
# the first requests: one text, padded, seven texts of many lengths
ASKED = 6
# engines of the page and precisions to load them in
PROGRAMS = (
    (TEXT, "onnxruntime", "int8"),
    (TEXT, "openvino", "int8"),
    (TEXT, "pytorch", "int8-dynamic"),
    (TEXT, "torchscript", "fp32"),
    (TEXT, "inductor", "int8"),
    (TEXT, "tvm", "fp32"),
    (IMAGE, "openvino", "fp32"),
    (IMAGE, "pytorch", "bf16"),
)
# they need no module of transformers and torchao, and no compiler
PACKAGES = ("torchscript", "inductor")
# A user's process, with the page's program as engine.py; a module that is None is not there.
DRIVER = """
import pathlib
import sys

import numpy

if sys.argv[4:] == ["eager"]:
    import functools, torch
    torch.compile = functools.partial(torch.compile, backend="eager")
else:
    sys.modules.update(dict.fromkeys(sys.argv[4:]))
from engine import load

run = load(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
for number in range(int(sys.argv[3])):
    numpy.save(f"{number}.npy", run(dict(numpy.load(f"{number}.npz"))))
print("tightrope" in sys.modules)
"""


def source(program: str) -> str:
    """The program that loads an engine: of a bundle, or one that the page alone has."""
    path = OURS / f"engines/{program}.py"
    return path.read_text() if path.exists() else block(PAGE, "python", f"{program}: engine.py")


def require_equal(
    program: str, engine: Path, batches: list[Arrays], expected: list[np.ndarray], folder: Path
) -> None:
    """Fail unless the program answers as the pipeline's own, without Tightrope."""
    (folder / "bundled").mkdir()
    shutil.copyfile(OURS / "buckets.py", folder / "bundled/buckets.py")
    (folder / "engine.py").write_text(source(program))
    (folder / "driver.py").write_text(DRIVER)
    for number, batch in enumerate(batches):
        np.savez(folder / f"{number}.npz", **batch)
    words, environment = [str(engine.parent), str(THREADS), str(len(batches))], {}
    if program == "compile":
        words += ["eager"]
    if program in PACKAGES:
        words += ["transformers", "torchao"]
        environment = {"PATH": str(folder), "CXX": "/there/is/none"}
        environment["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "cache")
    told = printed_in(folder, "driver.py", *words, **environment).splitlines()[-1]
    assert told == str(program == "tightrope")
    for number, one in enumerate(expected):
        other = np.load(folder / f"{number}.npy")
        assert other.dtype == np.float32
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("task", "engine", "precision"), PROGRAMS)
def test_a_program_of_the_page_answers_as_the_engine_that_was_measured(
    task, engine, precision, engine_of, answers, batches, tmp_path
) -> None:
    variant = name_variant(engine, precision)
    path = engine_of(task, variant)
    skip_where_emulated(variant, json.loads(path.read_text()))
    expected = answers(task, variant).first[:ASKED]
    require_equal(engine, path, batches[task][:ASKED], expected, tmp_path)


def test_the_program_of_torch_compile_answers_as_pytorch(built, batches, expected, tmp_path):
    """The files are those of the eager engine. PyTorch runs the graph: to compile it takes long."""
    path, first = built(name_variant("pytorch", "fp32")), batches[TEXT][:ASKED]
    require_equal("compile", path, first, expected[TEXT][:ASKED], tmp_path)


def test_the_own_function_loads_an_engine(repository, answers, built, batches, tmp_path) -> None:
    (tmp_path / "scripts").symlink_to(repository / "scripts")
    variant = name_variant("onnxruntime", "fp32")
    expected = answers(TEXT, variant).first[:1]
    require_equal("tightrope", built(variant), batches[TEXT][:1], expected, tmp_path)


def test_texts_become_the_inputs_and_logits_the_labels_that_were_measured(tiny, built, tmp_path):
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
    (tmp_path / "main.py").write_text(program.replace("truncation(128", f"truncation({LONGEST}"))
    (tmp_path / "engine.py").write_text(source("onnxruntime"))
    told = printed_in(tmp_path, "main.py").splitlines()[-1]
    labels = read_manifest(tiny.checkpoint, CheckpointManifest)["labels"]
    right = [example["label"] for example in read_split(tiny.split("evaluation"))[:2]]
    assert told == repr([labels[index] for index in right])
