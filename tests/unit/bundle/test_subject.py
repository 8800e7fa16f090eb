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

PYTORCH, NEEDS = (
    "cpu-pytorch-fp32",
    r"its PyTorch module needs code of Tightrope \({} in config.json",
)


@pytest.mark.parametrize(
    ("variant", "field", "why"),
    [
        ("cuda-tensorrt-fp16", "of_another", "an engine for a GPU has no bundle yet"),
        ("cpu-compile-fp32", "of_another", "torch.compile compiles at each start; bundle inductor"),
        *(
            (PYTORCH, f"tightrope_{one}", NEEDS.format(f"tightrope_{one}"))
            for one in ("sizes", "x")
        ),
    ],
)
def test_what_no_program_can_load_is_refused(variant, field, why, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", field: "relu"}))
    with pytest.raises(TightropeError, match=f"^{variant}: {why}"):
        require_own_program(parse(variant), tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    require_own_program(parse(PYTORCH), tmp_path)
    failed: Any = {**ENGINE, "status": "failed", "reason": "killed: out of memory"}
    with pytest.raises(TightropeError, match=r"^cpu-pytorch-fp32 was not built: killed: out"):
        require_built(failed)
    require_built({**failed, "status": "ok"})


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
