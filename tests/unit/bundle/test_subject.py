"""Which variants have a bundle, and why others have none."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from manifests import ENGINE
from tightrope.bundle.facts import required
from tightrope.bundle.subject import require_built, require_own_program
from tightrope.errors import TightropeError
from tightrope.variants import parse


@pytest.mark.parametrize(
    ("variant", "why"),
    [
        ("cuda-tensorrt-fp16", "an engine for a GPU has no bundle yet"),
        ("cpu-compile-fp32", "torch.compile compiles at each start; bundle inductor instead"),
    ],
)
def test_a_variant_without_a_program_is_refused(variant: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(TightropeError, match=f"^{variant}: {why}"):
        require_own_program(parse(variant), tmp_path)


@pytest.mark.parametrize("field", ["tightrope_activation", "tightrope_sizes"])
def test_a_module_that_transformers_cannot_make_is_refused(field: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", field: "relu"}))
    with pytest.raises(TightropeError, match=rf"needs code of Tightrope \({field} in config.json"):
        require_own_program(parse("cpu-pytorch-fp32"), tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    require_own_program(parse("cpu-pytorch-fp32"), tmp_path)


def test_what_was_compiled_for_a_processor_requires_its_instructions() -> None:
    for files, compiled in (
        (["model.onnx"], False),
        (["model.pt2"], True),
        (["16x128.so", "weights.safetensors"], True),
        (["model.xml", "model.bin", "1x32.blob"], True),
    ):
        subject: Any = SimpleNamespace(
            engine={"files": dict.fromkeys(files)}, latency=SimpleNamespace(host={"isa": ["avx2"]})
        )
        assert required(subject) == (["avx2"] if compiled else [])


def test_an_engine_that_was_not_built_is_refused_with_the_reason() -> None:
    failed: Any = {**ENGINE, "status": "failed", "reason": "killed: out of memory"}
    with pytest.raises(TightropeError, match=r"^cpu-pytorch-fp32 was not built: killed: out"):
        require_built(failed)
    require_built({**failed, "status": "ok"})
