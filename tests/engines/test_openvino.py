from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tightrope.inputs import stack
from tightrope.loading import load_engine
from tightrope.manifest import read_manifest
from tightrope.supervise import supervised
from tightrope.variants import Variant
from tiny_model import LIMITS, TinyModel, build_variant, evaluation_rows, name_variant

Build = Callable[[Variant], Path]


def compiled_settings(folder: Path, precision: str, threads: int) -> dict[str, str]:
    """Run in a child: what the compiled program itself says of its settings."""
    from tightrope.engines import openvino

    model = openvino.compiled(folder, precision, threads)
    names = ("INFERENCE_PRECISION_HINT", "INFERENCE_NUM_THREADS", "NUM_STREAMS")
    return {name: str(model.get_property(name)) for name in names}


def logits(path: Path, model: TinyModel) -> np.ndarray:
    """Run in a child: logits of the first evaluation texts."""
    run, _ = load_engine(path, threads=1)
    return run(stack(evaluation_rows(model)[:16]))


def test_fp32_does_not_run_in_bf16_where_the_cpu_has_it(built: Build) -> None:
    """Unsaid, OpenVINO takes bf16 for a model in fp32."""
    engine = read_manifest(built(name_variant("openvino", "fp32")))
    assert {name for counts in engine["executed"].values() for name in counts} == {"fp32"}


@pytest.mark.parametrize("threads", [1, 2])
def test_one_stream_with_the_threads_that_are_asked_for(built: Build, threads: int) -> None:
    folder = built(name_variant("openvino", "fp32")).parent
    found = supervised(compiled_settings, folder, "fp32", threads, limits=LIMITS)
    assert found["INFERENCE_NUM_THREADS"] == str(threads)
    assert found["NUM_STREAMS"] == "1"
    assert (
        "f32" in found["INFERENCE_PRECISION_HINT"] or "float" in found["INFERENCE_PRECISION_HINT"]
    )


def test_the_weights_of_fp32_are_not_compressed_and_those_of_int8_are(built: Build) -> None:
    sizes = {
        precision: read_manifest(built(name_variant("openvino", precision)))["files"]["model.bin"][
            "size_bytes"
        ]
        for precision in ("fp32", "int8")
    }
    assert sizes["fp32"] > 3 * sizes["int8"]


def test_int8_runs_every_weighted_product_in_int8(built: Build) -> None:
    engine = read_manifest(built(name_variant("openvino", "int8")))
    assert engine["executed"]["FullyConnected"] == {"int8": 14}


def test_building_int8_again_gives_the_same_answers(
    tiny: TinyModel, built: Build, tmp_path: Path
) -> None:
    variant = name_variant("openvino", "int8")
    again = build_variant(tiny, variant, tmp_path / "engine.json")
    one, other = (supervised(logits, path, tiny, limits=LIMITS) for path in (built(variant), again))
    np.testing.assert_array_equal(one, other)


def test_no_path_of_this_machine_is_in_the_files(tiny: TinyModel, built: Build) -> None:
    for precision in ("fp32", "int8"):
        content = (built(name_variant("openvino", precision)).parent / "model.xml").read_text()
        assert str(tiny.simplified.parent) not in content
