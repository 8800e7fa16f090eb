"""Each runtime says which operators ran, from which their work and the bounds of a call follow.

Also what causes leave that cannot be removed.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from artifact_files import written
from short_timing import timing_settings
from tightrope.artifacts.failures import write_failure
from tightrope.artifacts.files import read_json
from tightrope.artifacts.manifest import identity, open_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.engines.load import load_engine
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.encode import timing_batches
from tightrope.jobs.child import supervised
from tightrope.measure.causes import verify_causes
from tightrope.measure.profile import measure_profile, operator_times
from tightrope.records.profile import CausesRecord, OperatorTime, ProfileRecord
from tightrope.variants import Variant
from tiny_model import (
    EXECUTION,
    LIMITS,
    LONGEST,
    OPTIONS,
    TinyModel,
    artifacts_of,
    build_variant,
    name_variant,
)

THREADS = 1
CALLS = 5
# tokens of the bucket of those that pad: 16 x 32, 16 x 64
PADDED = {"openvino": 512, "tvm": 1024}


def operators_of(engine: Path, *batches: Arrays) -> list[list[OperatorTime]]:
    """In a child, which alone loads the engine."""
    run, _ = load_engine(engine, threads=THREADS)
    for batch in batches:
        run(batch)
    calls = [(batch, CALLS) for batch in batches]
    return operator_times(engine, run, calls, threads=THREADS)


@pytest.fixture
def at_batches(tiny: TinyModel, built: Callable[..., Path]) -> Any:
    """From a variant and batches of 32 tokens to the operators of a call of each."""

    def operators(variant: Variant, *batches: int) -> list[list[OperatorTime]]:
        shapes = [{"batch": batch, "sequence": 32} for batch in batches]
        files = tiny.checkpoint, tiny.split("timing")
        inputs = timing_batches(*files, shapes, max_sequence=LONGEST)
        return supervised(partial(operators_of, built(variant), *inputs), limits=LIMITS)

    return operators


@pytest.mark.parametrize("engine", ["onnxruntime", "pytorch", *PADDED])
def test_the_work_of_a_call_is_that_of_its_shapes_whatever_the_runtime(at_batches, engine) -> None:
    """Of an engine that is loaded once for all of them."""
    found = []
    asked = at_batches(name_variant(engine, "fp32"), 2, 4)
    for batch, operators in zip((2, 4), asked, strict=True):
        tokens = PADDED.get(engine, batch * 32)
        products = [one for one in operators if one.group == "products"]
        layer = 2 * tokens * (4 * 64 * 64 + 2 * 64 * 128)
        found.append(sum(one.operations for one in products))
        # of the second layer the ONNX file computes the first token only
        assert found[-1] > layer
        assert sum(one.bytes for one in products) >= 4 * tokens * (2 * 64 + 2 * 128)
        normalizations = [one for one in operators if one.group == "normalization"]
        largest = max(normalizations, key=lambda one: one.bytes)
        # read and written once, if all is fused
        assert largest.bytes >= 2 * 4 * tokens * 64 and largest.operations >= tokens * 64
        assert all(one.seconds >= 0 for one in operators) and products[0].seconds > 0
    # but for an operator on one number, which is the same in both
    assert found[1] == pytest.approx(found[0] * (1 if engine in PADDED else 2))


# in which bf16 is no cause of the time of fp32
PEAKS = {
    **{"device": "cpu", "threads": 1, "smallest_operator_s": 1e-6},
    **{"operations_per_s": {"fp32": 1e11}, "copy_bytes_per_s": 1e10},
}


def profiled(tiny: TinyModel, engine: Path, folder: Path) -> Path:
    """The profile of an engine by the requests and the peaks in that folder."""
    files = [folder / f"{name}.json" for name in ("requests", "peaks", "profile")]
    facts = {"max_sequence": LONGEST, "execution": EXECUTION}
    measure_profile(artifacts_of(tiny, engine, split="timing"), *files, **facts)
    return files[-1]


@pytest.mark.parametrize("failed", ["requests", "peaks"])
def test_what_profiles_share_and_lack_is_the_reason_of_each(tiny, built, tmp_path, failed) -> None:
    variant = name_variant("onnxruntime", "fp32")
    written(tmp_path / "peaks.json", {"peaks": PEAKS})
    write_failure(tmp_path / f"{failed}.json", reason="killed", transient=False)
    record = ProfileRecord.read(profiled(tiny, built(variant), tmp_path))
    assert (record.status, record.reason, record.shapes) == ("failed", "killed", [])


def test_a_cause_without_which_no_engine_is_built_and_no_profile_leave_the_reason(
    tiny: TinyModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cause that is removed: tests/workflow/test_whole_run.py."""
    # so that no core is idle, on any machine
    monkeypatch.setattr("tightrope.measure.causes.physical_cores", lambda: 1)
    variant, buckets = name_variant("openvino", "fp32"), {"batch": [1], "sequence": [64]}
    engine = tmp_path / "engines" / str(variant) / "engine.json"
    build_variant(tiny, variant, engine, options={**OPTIONS["openvino"], "buckets": buckets})
    checkpoint = identity(open_manifest(tiny.checkpoint, CheckpointManifest))
    request = {"batch": 1, "sequence": 16, "finish_s": 0.0}
    written(tmp_path / "requests.json", {"checkpoint": checkpoint, "requests": [request]})
    written(tmp_path / "peaks.json", {"peaks": PEAKS})
    profile, target = profiled(tiny, engine, tmp_path), tmp_path / "causes.json"
    files = artifacts_of(tiny, engine), {"source": str(tiny.simplified)}, profile, target
    planted = read_json(profile)

    def verified(**changes: Any) -> CausesRecord:
        written(profile, {**planted, **changes})
        verify_causes(*files, timing_settings())
        return CausesRecord.read(target)

    record = verified(unprofiled="no profiler")
    assert (record.status, record.reason, record.causes) == ("failed", "no profiler", [])
    planted["shapes"][0]["batch"] = -5
    record = verified()
    (cause,) = record.causes
    assert (record.status, cause.rounds) == ("ok", [])
    assert cause.reason.startswith("not built: ")


def test_the_kernels_of_tvm_do_the_work_of_the_bucket(at_batches: Any) -> None:
    """Of BERT with two layers, 64 channels, 128 in between and three labels."""
    (kernels,) = at_batches(name_variant("tvm", "fp32"), 2)
    done: dict[str, float] = {}
    for one in kernels:
        done[one.group] = done.get(one.group, 0.0) + one.operations
    # the nearest bucket, 16 x 64
    texts, tokens = 16, 16 * 64
    layer = 2 * tokens * (4 * 64 * 64 + 2 * 64 * 128) + 4 * tokens * 64 * 64
    assert done["products"] == 2 * layer + 2 * texts * (64 * 64 + 64 * 3)
    assert {"softmax", "normalization", "embeddings", "moves"} <= set(done)
    assert not [one for one in kernels if one.name.startswith("vm.")]


def test_a_package_names_its_attention_and_each_product_once(at_batches: Any) -> None:
    """Attention is no primitive of oneDNN, and was taken for overhead."""
    (kernels,) = at_batches(name_variant("inductor", "int8"), 2)
    attention = [one for one in kernels if one.group == "attention"]
    assert [one.kind for one in attention if "scaled_dot_product" in one.kind]
    assert "dispatch" in {one.group for one in kernels}
    done = sum(one.operations for one in kernels if one.group == "products")
    layer = 2 * 2 * 32 * (4 * 64 * 64 + 2 * 64 * 128)
    assert done == 2 * layer + 2 * 2 * (64 * 64 + 64 * 3)
