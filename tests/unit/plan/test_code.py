"""A changed definition changes the code of the jobs that can reach it, and of no other."""

import ast
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tightrope.artifacts import provenance
from tightrope.artifacts.provenance import sources_of
from tightrope.checkpoint import source as checkpoint_source
from tightrope.data import source as data_sources
from tightrope.engine_table import ENGINES
from tightrope.signature import IMAGE, TEXT
from tightrope.studies.table import STUDIES

SOURCES = ("hub:owner/name@main", "path:folder", "package:name/folder", "scratch:bert")
SOURCES += ("onnx:file.onnx", "model:another")
CHECKPOINTS = {source.partition(":")[0]: source for source in SOURCES}
TEXTS = ("docstrings:one,two", "files:*.csv", "hub:owner/name@main", "random")
IMAGES = ("digits", "files:folder", "hub:owner/name@main", "random")
DATA = [*((source, TEXT) for source in TEXTS), *((source, IMAGE) for source in IMAGES)]
# jobs that load an engine, that build one besides, that wait for a quiet machine, and that train
RACES = {"race_family", "race_finalists"}
STUDIED = {f"study: {one}" for one in STUDIES}
TIMES = {"measure_latency", *RACES}
GROUPS = {
    "LOADS": TIMES | {"measure_accuracy", "measure_profile", "measure_study"},
    "BUILDS": {"choose_structure", "measure_structures", "verify_causes"},
    "LOADED": {f"load {engine}" for engine in ENGINES},
    "TRAINS": {"choose_structure", "measure_training", "train_model"},
    **{"RACES": RACES, "TIMES": TIMES, "STUDIED": STUDIED, "nothing": set()},
}
# These must not be reached by a job that trains, builds or measures.
NOT_FOR_WORK = ("bundle", "compare", "plan", "report", "summary", "terminal")
READING = {f"tightrope.config.{name}" for name in ("keys", "models", "read", "schema")}
# a race chooses who races, and its winner
CHOOSING = {f"tightrope.decide.{name}" for name in ("finalists", "race", "result")}
PRESENTING = ("bundle", "describe", "render", "summarize")
# A definition below a package or in a module, and the jobs that make their files again when it
# changes: scripts, and what they load by name for an engine, a source or a recipe.
PLANTED = """
bundle:sample_files -> bundle
checkpoint:OnnxSource -> checkpoint: onnx
data:check_labels -> prepare_data
data/sources/digits:read -> data: digits
decide:beaten -> summarize
decide:finalists -> race_finalists
engines:build_in_folder -> BUILDS, build_engine
engines:load_engine -> LOADS, BUILDS
engine_table:read_specs -> LOADS, BUILDS, build_engine, bundle, bundle_triton, render_report,
    summarize
engines/openvino:SPEC -> nothing
engines/openvino:build -> build openvino
engines/openvino:load -> load openvino
engines/openvino:operator_of -> operator_times openvino
inputs:text_encoder -> LOADS, BUILDS, build inductor, build openvino, calibrate,
    measure_requests, run_teacher, search_operators, simplify_onnx
int8:in_qdq -> quantize_onnx, search_operators
jobs:INTERVAL_SECONDS -> BUILDS, STUDIED, TIMES, TRAINS, calibrate, measure_accuracy,
    measure_costs, run_teacher, search_operators, training: qat
machine:disturbance -> RACES, bundle, measure_latency, summarize
machine:QuietMachine -> BUILDS, STUDIED, TIMES, measure_study, measure_training
measure:Comparison -> measure_latency
measure/rounds:ROUNDS -> BUILDS
model:swap_activation -> TRAINS
onnx:import_checkpoint -> training: onnx
onnx:text_inputs -> choose_structure, export_onnx, measure_structures, simplify_onnx, training: onnx
plan:make_plan -> nothing
records:LatencyRecord -> RACES, bundle, measure_latency, summarize
records:change -> RACES, summarize
report:study_sections -> render_report
runtimes:Buckets -> LOADED, build compile, build inductor, build onnxruntime, build openvino,
    build tensorrt, build torchscript, build tvm, measure_profile, operator_times openvino,
    operator_times tvm
sources:archive_errors -> data: local_images
sources:fetching -> checkpoint: hub, data: hub
sources:package_folder -> checkpoint: package, data: docstrings
studies/idleness:after -> study: idleness
studies/loadgen:bucket_edges -> study: traffic
studies/idleness:words -> render_report, summarize
studies/loadgen:SEEDS -> study: traffic
statistics:speedup -> RACES, choose_structure, measure_latency, render_report, study: traffic,
    summarize
training:flip_crop -> TRAINS
training:fine_tune -> measure_training, train_model, training: qat
variants:parse -> LOADS, BUILDS, build_engine, bundle, bundle_triton, render_report, summarize
"""
ROWS = [row.split(" -> ") for row in PLANTED.replace("\n    ", " ").strip().splitlines()]


def entries(scripts: Path) -> dict[str, str]:
    """What is digested of each job: its script, or what it loads by name."""
    found = {path.stem: path.name for path in scripts.glob("*.py")}
    for engine in ENGINES:
        for function in ("build", "load", "operator_times"):
            found[f"{function} {engine}"] = f"tightrope/engines/{engine}.py:{function}"
    for kind, text in CHECKPOINTS.items():
        (found[f"checkpoint: {kind}"],) = checkpoint_source.modules(text)
    for module in {one for kinds in data_sources.MODULES.values() for one in kinds.values()}:
        found[f"data: {module}"] = f"tightrope/data/sources/{module}.py"
    (found["training: onnx"],) = checkpoint_source.importer_modules(CHECKPOINTS["onnx"])
    for study in STUDIES:
        found[f"study: {study}"] = f"tightrope/studies/{study}.py:measure"
    return found | {"training: qat": "tightrope/training/quantization_aware.py"}


@pytest.fixture(scope="module")
def copy(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the scripts that a test may change, if it leaves them as they were."""
    folder = tmp_path_factory.mktemp("copy") / "scripts"
    shutil.copytree(repository / "scripts", folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="module")
def reached(copy: Path) -> dict[str, dict[tuple[str, str], str]]:
    """The definitions that each job can reach, with their digests."""
    return {job: sources_of(copy).reached([entry]) for job, entry in entries(copy).items()}


@pytest.fixture
def changed(copy, reached) -> Iterator[Callable[[str, str], set[str]]]:
    """Gives a module of the copy another text; returns the jobs whose code that changes."""
    sources, jobs = sources_of(copy), entries(copy)
    kept = dict(sources.modules)
    written: dict[Path, str | None] = {}

    def write(module: str, text: str) -> set[str]:
        file = copy / f"{module}.py"
        written.setdefault(file, file.read_text() if file.exists() else None)
        file.write_text(text)
        sources.modules.pop(module.replace("/", "."), None)
        for cached in (sources.file_of, sources.resolved, sources.next_of):
            cached.cache_clear()
        name = module.replace("/", ".")
        return {
            job
            for job, before in reached.items()
            # what reaches nothing of a module cannot change with it
            if any(one == name for one, _ in before)
            and sorted(sources.reached([jobs[job]]).values()) != sorted(before.values())
        }

    yield write
    for file, before_it in written.items():
        file.unlink() if before_it is None else file.write_text(before_it)
    sources.modules = kept
    for cached in (sources.file_of, sources.resolved, sources.next_of):
        cached.cache_clear()


def planted(text: str, name: str) -> str:
    """The text of a module in which a definition does something else."""
    lines = text.splitlines()
    node = next(one for one in ast.parse(text).body if name in provenance.defined_by(one))
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        first = node.body[1] if provenance.is_docstring(node.body[0]) else node.body[0]
        line = min([first.lineno, *(one.lineno for one in getattr(first, "decorator_list", ()))])
        lines.insert(line - 1, " " * first.col_offset + "planted = 1")
    else:
        lines.insert(node.end_lineno or 0, f"{name} = ({name}, 1)")
    return "\n".join([*lines, ""])


def module_of(copy: Path, place: str, name: str) -> str:
    """The only module at that place, a package or a module itself, that defines the name."""
    folder = copy / "tightrope" / place
    files = [*folder.rglob("*.py")] or [folder.with_suffix(".py")]
    (found,) = (
        file
        for file in files
        if name in file.read_text()
        and any(name in provenance.defined_by(node) for node in ast.parse(file.read_text()).body)
    )
    return found.relative_to(copy).with_suffix("").as_posix()


@pytest.mark.parametrize(("where", "words"), ROWS, ids=[where for where, _ in ROWS])
def test_a_changed_definition_makes_stale_what_can_reach_it_alone(copy, changed, where, words):
    place, name = where.split(":")
    module = module_of(copy, place, name)
    jobs = {job for word in words.split(", ") for job in GROUPS.get(word, {word})}
    assert changed(module, planted((copy / f"{module}.py").read_text(), name)) == jobs


def test_an_engine_is_each_module_that_has_what_is_called_of_one_by_name(copy: Path) -> None:
    for file in (copy / "tightrope/engines").glob("*.py"):
        names = sources_of(copy).module(f"tightrope.engines.{file.stem}").digests.keys()
        engine = ENGINES.get(file.stem)
        assert ({"build", "load"} <= names) == (engine is not None), file
        assert "operator_times" in names or not (engine and engine.profiled), file


def test_no_work_can_reach_what_presents_decides_or_reads_the_configuration(reached) -> None:
    for job, found in reached.items():
        if not job.startswith(PRESENTING):
            packages = {module.split(".")[1] for module, _ in found if "." in module}
            assert not packages & set(NOT_FOR_WORK), job
            modules = {module for module, _ in found}
            assert not modules & READING, job
            deciding = {one for one in modules if one.startswith("tightrope.decide.")}
            assert deciding <= (CHOOSING if job.startswith("race_") else set()), job


def test_every_kind_of_checkpoint_and_of_data_is_known_here() -> None:
    assert set(CHECKPOINTS) == set(checkpoint_source.KINDS)
    known = {kind.partition(":")[0] for kinds in data_sources.KINDS.values() for kind in kinds}
    assert known <= {data_sources.parse_source(source, task=task)[0] for source, task in DATA}
