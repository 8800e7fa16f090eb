"""The code of a job holds the modules of its own engines and kind of source, and of no other."""

import shutil
from pathlib import Path

import pytest
from snakemake.iocontainers import Wildcards
from tightrope.artifacts.provenance import code_digest, imported_files, syntax
from tightrope.checkpoint import source as checkpoint_source
from tightrope.data import source as data_sources
from tightrope.plan import code
from tightrope.plan.plan import Plan
from tightrope.signature import IMAGE, TEXT
from tightrope.variants import parse

CHECKPOINTS = {
    "hub": "hub:owner/name@main",
    "path": "path:folder",
    "package": "package:name/folder",
    "scratch": "scratch:bert",
    "onnx": "onnx:file.onnx",
    "model": "model:another",
}
DATA = {
    "docstrings": ("docstrings:one,two", TEXT),
    "text files": ("files:*.csv", TEXT),
    "texts of the hub": ("hub:owner/name@main", TEXT),
    "random texts": ("random", TEXT),
    "digits": ("digits", IMAGE),
    "image files": ("files:folder", IMAGE),
    "images of the hub": ("hub:owner/name@main", IMAGE),
    "random images": ("random", IMAGE),
}


@pytest.fixture
def scripts(repository: Path, tmp_path: Path) -> Path:
    """A copy of the scripts that the test may change."""
    copy = tmp_path / "scripts"
    shutil.copytree(repository / "scripts", copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def digests(scripts: Path) -> dict[str, str]:
    """The code of what depends on the kind of source, by job and kind."""
    for cached in (syntax, imported_files, code_digest):
        cached.cache_clear()
    found = {}
    model = Wildcards(fromdict={"model": "m"})
    for kind, source in CHECKPOINTS.items():
        config = {"models": {"m": {"checkpoint": source}}}
        found[f"checkpoint: {kind}"] = code.checkpoint_code(str(scripts), config, model)
        found[f"training: {kind}"] = code.training_code(str(scripts), config, model)
    for kind, (source, task) in DATA.items():
        config = {"models": {"m": {"data": source, "task": task}}}
        found[f"data: {kind}"] = code.data_code(str(scripts), config, model)
    return found


def engine_digests(scripts: Path) -> dict[str, str]:
    """The code of what builds and runs OpenVINO, whose baseline is PyTorch."""
    for cached in (syntax, imported_files, code_digest):
        cached.cache_clear()
    variants = ["cpu-pytorch-fp32", "cpu-openvino-fp32"]
    fields = dict.fromkeys(Plan._fields) | {
        "variants": {("m", "cpu"): [parse(name) for name in variants]},
        "baselines": {"m": {"cpu": variants[0]}},
    }
    plan, own = Plan(**fields), Wildcards(fromdict={"model": "m", "variant": variants[1]})
    return {
        "build": code.build_code(str(scripts), "openvino"),
        "accuracy": code.variant_code(str(scripts), "measure_accuracy.py", own),
        "latency": code.latency_code(str(scripts), plan, own),
        "race": code.race_code(
            str(scripts), plan, Wildcards(fromdict={"model": "m", "device": "cpu"})
        ),
    }


@pytest.mark.parametrize(
    ("engine", "jobs"),
    [
        ("openvino", {"build", "accuracy", "latency", "race"}),
        ("pytorch", {"latency", "race"}),
        ("tvm", set()),
    ],
)
def test_a_changed_engine_changes_the_code_of_what_loads_it_alone(
    scripts: Path, engine: str, jobs: set[str]
) -> None:
    before = engine_digests(scripts)
    path = scripts / f"tightrope/engines/{engine}.py"
    path.write_text(path.read_text() + "\nCHANGED = True\n")
    after = engine_digests(scripts)
    assert {job for job, digest in before.items() if after[job] != digest} == jobs


@pytest.mark.parametrize(
    ("module", "jobs"),
    [
        ("onnx/file", {"checkpoint: onnx", "training: onnx"}),
        ("onnx/imported", {"checkpoint: onnx", "training: onnx"}),
        ("checkpoint/sources/onnx", {"checkpoint: onnx"}),
        ("checkpoint/sources/hub", {"checkpoint: hub"}),
        ("checkpoint/sources/path", {"checkpoint: path"}),
        ("checkpoint/sources/package", {"checkpoint: package"}),
        ("checkpoint/sources/scratch", {"checkpoint: scratch"}),
        ("sources/packages", {"checkpoint: package", "data: docstrings"}),
        ("sources/hub", {"checkpoint: hub", "data: texts of the hub", "data: images of the hub"}),
        ("data/sources/hub_tables", {"data: texts of the hub", "data: images of the hub"}),
        ("data/sources/hub_texts", {"data: texts of the hub"}),
        ("data/sources/hub_images", {"data: images of the hub"}),
        ("data/sources/docstrings", {"data: docstrings"}),
        ("data/sources/digits", {"data: digits"}),
        ("data/sources/text_files", {"data: text files"}),
        ("sources/tables", {"data: text files", "data: image files"}),
        ("data/sources/image_tables", {"data: image files"}),
        ("sources/archives", {"data: image files"}),
        ("data/splits", {f"data: {kind}" for kind in DATA}),
        ("engine_table", set()),
    ],
)
def test_a_changed_module_changes_the_code_of_the_kinds_that_use_it_alone(
    scripts: Path, module: str, jobs: set[str]
) -> None:
    before = digests(scripts)
    path = scripts / f"tightrope/{module}.py"
    path.write_text(path.read_text() + "\nCHANGED = True\n")
    after = digests(scripts)
    assert {job for job, digest in before.items() if after[job] != digest} == jobs


@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_every_kind_of_checkpoint_has_the_same_functions(kind: str) -> None:
    module = checkpoint_source.load_kind(checkpoint_source.parse_source(CHECKPOINTS[kind]))
    names = ("local_files", "libraries", "config_json", "fetch", "check")
    assert all(callable(getattr(module, name)) for name in names)


@pytest.mark.parametrize(("source", "task"), DATA.values(), ids=DATA)
def test_every_kind_of_data_but_random_has_the_same_functions(source: str, task: str) -> None:
    kind, _ = data_sources.parse_source(source, task=task)
    if kind == "random":
        assert data_sources.local_files(source, task=task) == []
        assert data_sources.libraries(source, task=task) == {}
        return
    module = data_sources.load_kind(kind, task=task)
    assert all(callable(getattr(module, name)) for name in ("local_files", "libraries", "read"))


def test_every_kind_of_the_tables_is_known_here() -> None:
    assert set(CHECKPOINTS) == set(checkpoint_source.KINDS)
    for task, kinds in data_sources.KINDS.items():
        mine = {data_sources.parse_source(*one[:1], task=one[1])[0] for one in DATA.values()}
        assert {kind.partition(":")[0] for kind in kinds} <= mine, task
