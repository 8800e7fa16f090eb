"""What a build leaves behind when it fails, and what it does not take for the variant's fault."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from artifact_files import flip
from onnx import helper
from programs import printed_in
from tightrope.artifacts.failures import write_failure
from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.errors import ArtifactError, TightropeError
from tightrope.jobs.child import Limits
from tightrope.onnx.file import load_onnx, save_onnx
from tiny_model import LIMITS, TinyModel, build_variant, name_variant

BUILD = """
import sys
from pathlib import Path
from tiny_model import TinyModel, build_variant, name_variant
folder, target = Path(sys.argv[1]), Path(sys.argv[2])
model = TinyModel(*(Path(word) for word in sys.argv[3:]))
build_variant(model, name_variant("openvino", "bf16"), target)
"""


@pytest.fixture(scope="module")
def foreign(tiny: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model with an operator that no runtime knows before its output."""
    model = load_onnx(tiny.simplified)
    model.graph.node[-1].output[0] = "before"
    model.graph.node.append(
        helper.make_node("Unheard", ["before"], ["logits"], "unheard", domain="of.elsewhere")
    )
    model.opset_import.append(helper.make_opsetid("of.elsewhere", 1))
    path = tmp_path_factory.mktemp("foreign") / "model.onnx"
    save_onnx(model, path)
    return path


def failed(path: Path) -> dict[str, Any]:
    engine = read_manifest(path, EngineManifest)
    assert engine["status"] == "failed"
    assert engine["files"] == {}
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    return engine


def test_bf16_has_failed_on_a_cpu_without_it(repository, tiny, tmp_path) -> None:
    """OpenVINO's kernels are told to use no instruction beyond AVX2."""
    modules = f"{repository}/scripts:{repository}/tests/support"
    variables = {"ONEDNN_MAX_CPU_ISA": "AVX2", "PYTHONPATH": modules}
    path = tmp_path / "engine.json"
    printed_in(tmp_path, "-c", BUILD, tmp_path, path, *tiny, **variables)
    engine = failed(path)
    assert "\n" not in engine["reason"]
    assert "src/" not in engine["reason"]


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_an_unknown_operator_is_a_failure_that_names_it(tiny, foreign, tmp_path, engine) -> None:
    variant = name_variant(engine, "fp32")
    path = build_variant(tiny, variant, tmp_path / "engine.json", source=foreign)
    document = failed(path)
    assert "of.elsewhere" in document["reason"] and "Unheard" in document["reason"]
    assert document["transient"] is False
    assert document["sources"] == {"model.onnx": sha256(foreign)}
    assert document["libraries"]
    assert document["build_s"] > 0


@pytest.mark.parametrize(("engine", "share"), [("onnxruntime", 0.5), ("openvino", 0.9)])
def test_a_harmed_onnx_file_is_no_failure_of_the_variant(tiny, tmp_path, engine, share) -> None:
    source = Path(shutil.copy(tiny.simplified, tmp_path / "model.onnx"))
    flip(source, int(share * source.stat().st_size))
    target = tmp_path / "out" / "engine.json"
    with pytest.raises(ArtifactError, match=r"model\.onnx: "):
        build_variant(tiny, name_variant(engine, "fp32"), target, source=source)
    assert not target.exists()


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino", "inductor"])
def test_what_an_engine_needs_and_lacks_is_the_reason_of_its_failure(tiny, tmp_path, engine):
    """OpenVINO and AOTInductor read the calibration, ONNX Runtime the quantized ONNX."""
    names = {"nncf": "a.json", "minmax": "b.json", "u8s8": "c.onnx"}
    paths = {key: tmp_path / name for key, name in names.items()}
    for path in paths.values():
        write_failure(path, reason="not calibrated: out of memory", transient=True)
    variant, model = name_variant(engine, "int8"), tiny._replace(**paths)
    first = replace(LIMITS, last_attempt=False)  # it would be of no use to try again
    document = failed(build_variant(model, variant, tmp_path / "out/engine.json", limits=first))
    assert document["reason"] == "not calibrated: out of memory"
    assert document["transient"] is False


def test_a_build_beyond_its_limits_is_tried_again_before_it_has_failed(tiny, tmp_path) -> None:
    variant, target = name_variant("openvino", "int8"), tmp_path / "engine.json"
    short = Limits(memory_bytes=8e9, seconds=0.5, last_attempt=False)
    with pytest.raises(TightropeError, match=f"{variant}: killed after .* another attempt follows"):
        build_variant(tiny, variant, target, limits=short)
    assert not target.exists()
    build_variant(tiny, variant, target, limits=Limits(memory_bytes=8e9, seconds=0.5))
    assert failed(target)["transient"] is True


def test_files_of_a_former_build_are_not_in_the_new_one(tiny: TinyModel, tmp_path: Path) -> None:
    (tmp_path / "stale.bin").write_bytes(b"stale")
    variant = name_variant("onnxruntime", "fp32")
    engine = read_manifest(build_variant(tiny, variant, tmp_path / "engine.json"), EngineManifest)
    assert set(engine["files"]) == {"model.onnx"}
    assert not (tmp_path / "stale.bin").exists()
