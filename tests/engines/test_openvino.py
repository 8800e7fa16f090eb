import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, EngineManifest
from tightrope.engines.load import load_engine
from tightrope.inputs.arrays import Arrays, stack
from tightrope.int8.calibrate import read_cache, write_cache
from tightrope.jobs.child import supervised
from tightrope.machine.host import describe_host
from tightrope.machine.lacks import missing_instructions
from tightrope.variants import Variant
from tiny_model import (
    LIMITS,
    LONGEST,
    OPTIONS,
    TinyModel,
    answers_of,
    build_variant,
    difference,
    evaluation_rows,
    name_variant,
)

Build = Callable[[Variant], Path]
Other = Callable[..., Path]
BUILD_INT8 = """
import sys
from pathlib import Path
from tiny_model import build_variant, model_files, name_variant

folder, target = map(Path, sys.argv[1:])
build_variant(model_files(folder), name_variant("openvino", "int8"), target)
"""


@pytest.fixture(scope="module")
def other(tiny: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> Other:
    """From a precision and options that are not the usual ones to engine.json, each built once."""
    folder = tmp_path_factory.mktemp("openvino")

    @cache
    def build(precision: str, **options: object) -> Path:
        facts: dict[str, Any] = {"options": {**OPTIONS["openvino"], **options}}
        if options.get("route") == "pytorch":
            facts["source"] = tiny.checkpoint
        words = "-".join([precision, *(f"{name}={one}" for name, one in options.items())])
        target = folder / words / "engine.json"
        return build_variant(tiny, name_variant("openvino", precision), target, **facts)

    return build


def compiled_settings(folder: Path, precision: str, threads: int) -> dict[str, str]:
    """Run in a child: what the compiled program itself says of its settings."""
    from tightrope.engines.openvino import Programs

    model = Programs(folder, precision, threads, {}).program(None)
    names = ("INFERENCE_PRECISION_HINT", "INFERENCE_NUM_THREADS", "NUM_STREAMS")
    return {name: str(model.get_property(name)) for name in names}


def test_each_precision_runs_in_its_types_and_no_other(built: Build) -> None:
    """Unsaid, OpenVINO takes bf16 for a model in fp32."""
    executed = {
        name: read_manifest(built(name_variant("openvino", name)), EngineManifest)["executed"]
        for name in ("fp32", "int8", "int8-bf16")
    }
    assert executed["fp32"]["FullyConnected"] == {"fp32": 12}
    assert "bf16" not in {name for counts in executed["fp32"].values() for name in counts}
    assert executed["int8"]["FullyConnected"] == {"int8": 14}
    assert executed["int8-bf16"]["FullyConnected"] == {"int8": 14}
    variant = name_variant("openvino", "int8-bf16")
    bf16 = missing_instructions(variant, describe_host()) is None
    assert executed["int8-bf16"]["MVN"] == {"bf16" if bf16 else "fp32": 5}


def test_int8_with_bf16_between_fails_for_the_reason_of_int8(tiny, tmp_path) -> None:
    int8 = tmp_path / "int8" / "engine.json"
    variant = name_variant("openvino", "int8")
    cache = tmp_path / "imported.json"
    of = {**read_cache(tiny.nncf, model=tiny.simplified), "imported": "another tool's"}
    write_cache(cache, **{key: of[key] for key in of if key != "schema"})
    build_variant(tiny._replace(nncf=cache), variant, int8)
    target = tmp_path / "bf16" / "engine.json"
    build_variant(tiny, name_variant("openvino", "int8-bf16"), target, source=int8)
    reasons = [read_manifest(path, EngineManifest)["reason"] for path in (int8, target)]
    assert reasons[0] == reasons[1]
    assert "it holds no samples, and this engine collects ranges of its own" in reasons[0]


def test_one_stream_with_the_threads_that_are_asked_for(built: Build) -> None:
    folder = built(name_variant("openvino", "fp32")).parent
    found = supervised(compiled_settings, folder, "fp32", 2, limits=LIMITS)
    assert found["INFERENCE_NUM_THREADS"] == "2"
    assert found["NUM_STREAMS"] == "1"
    assert (
        "f32" in found["INFERENCE_PRECISION_HINT"] or "float" in found["INFERENCE_PRECISION_HINT"]
    )


def test_int8_keeps_a_byte_of_each_weight_and_two_of_each_value_of_a_table_and_no_path(built, tiny):
    sizes = {}
    for precision in ("fp32", "int8"):
        path = built(name_variant("openvino", precision))
        files = read_manifest(path, EngineManifest)["files"]
        sizes[precision] = files["model.bin"]["size_bytes"]
        assert str(tiny.simplified.parent) not in path.with_name("model.xml").read_text()
    weights = 2 * (4 * 64 * 64 + 2 * 64 * 128) + 64 * 64
    words = read_manifest(tiny.checkpoint, CheckpointManifest)["vocabulary"]
    rows = (words or 0) + LONGEST + 2
    found = sizes["fp32"] - sizes["int8"]
    assert found == pytest.approx(3 * weights + 2 * rows * 64, rel=0.1)


def compiled_after(path: Path, model: TinyModel) -> list[list[object]]:
    """Run in a child: the buckets that have a program after loading, and after each request."""
    run, _ = load_engine(path, threads=1)
    rows = sorted(evaluation_rows(model), key=lambda row: len(row["input_ids"]))
    programs = run.run
    found = [[*programs.calls]]
    for batch, sequence in [(1, 17), (1, 32), (3, 40)]:
        run(stack(rows[:batch], sequence=sequence))
        found.append([*programs.calls])
    return found


@pytest.mark.parametrize(("static", "last"), [(None, (16, 64)), (1, None)])
def test_a_program_is_compiled_when_its_bucket_first_comes(static, last, tiny, other) -> None:
    found = supervised(compiled_after, other("fp32", static_programs=static), tiny, limits=LIMITS)
    assert found == [[], [(1, 32)], [(1, 32)], [(1, 32), last]]


def test_a_table_beyond_float16_stays_in_float32() -> None:
    values = np.zeros((3, 1 << 15), np.float32)
    values[:, 0] = [1.0, 7.0, 1e5]
    np.testing.assert_array_equal(supervised(gathered, values, limits=LIMITS), values)


def gathered(values: np.ndarray) -> np.ndarray:
    """Run in a child: all rows of a table, gathered by a program in fp32."""
    import openvino
    from openvino import opset13
    from tightrope.engines.openvino import halve_tables

    rows = opset13.parameter([len(values)], np.int64)
    model = openvino.Model([opset13.gather(opset13.constant(values), rows, 0)], [rows])
    halve_tables(model)
    program = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return np.array(program(np.arange(len(values)))[0])


@pytest.fixture(scope="module")
def texts(tiny: TinyModel) -> list[Arrays]:
    """The shortest texts in batches of several shapes."""
    rows = sorted(evaluation_rows(tiny), key=lambda row: len(row["input_ids"]))
    shapes = [(1, 17), (1, 32), (3, 32), (5, 64), (16, 33)]
    return [stack(rows[:batch], sequence=sequence) for batch, sequence in shapes]


@pytest.fixture(scope="module")
def usual(built: Build, texts: list[Arrays]) -> Callable[[str], list[np.ndarray]]:
    """From a precision to the answers of the engine with the usual options, each asked once."""
    return cache(lambda precision: answers_of(built(name_variant("openvino", precision)), texts))


@pytest.mark.parametrize(
    ("precision", "options"),
    [
        ("fp32", {"buckets": None}),
        ("fp32", {"route": "pytorch"}),
        ("int8", {"route": "pytorch"}),
        ("fp32", {"blobs": True}),
        ("fp32", {"blobs": True, "buckets": None}),
        ("fp32", {"static_programs": 1}),
        ("fp32", {"blobs": True, "static_programs": 1}),
    ],
)
def test_every_option_gives_the_same_answers(texts, other, usual, precision, options) -> None:
    found = answers_of(other(precision, **options), texts)
    # the two routes are quantized apart, each by its own statistics
    tolerance = 0.05 if precision == "int8" else 1e-4
    for ours, theirs in zip(found, usual(precision), strict=True):
        assert difference(ours, theirs) <= tolerance


def test_the_route_from_pytorch_keeps_attention_whole_and_blobs_are_part_of_the_engine(other):
    path = other("fp32", route="pytorch")
    assert "ScaledDotProductAttention" in (path.parent / "model.xml").read_text()
    assert read_manifest(path, EngineManifest)["options"]["route"] == "pytorch"
    files = read_manifest(other("fp32", blobs=True), EngineManifest)["files"]
    assert {"1x32.blob", "1x64.blob", "16x32.blob", "16x64.blob"} <= set(files)


def test_int8_built_again_answers_the_same_and_keeps_nothing_in_home(tiny, texts, usual, tmp_path):
    """OpenVINO and NNCF, this one not within pytest, would keep an id of the user in HOME."""
    home, engine = tmp_path / "home", tmp_path / "engine/engine.json"
    home.mkdir()
    modules = [str(Path(__file__).parents[2] / name) for name in ("scripts", "tests/support")]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": ":".join(modules)}
    words = [sys.executable, "-c", BUILD_INT8, tiny.data.parents[1], engine]
    subprocess.run(words, env=environment, check=True)
    assert [path.name for path in home.iterdir()] == []
    for one, other in zip(answers_of(engine, texts), usual("int8"), strict=True):
        np.testing.assert_array_equal(one, other)
