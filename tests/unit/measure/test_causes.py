"""Which causes a setting removes, and between which bounds the saving is predicted."""

from typing import Any

import pytest
from tightrope.measure.causes import Cause, Profiled, causes
from tightrope.records.profile import Group, ProfiledShape
from tightrope.variants import parse

PEAKS = {"fp32": 1e12, "bf16": 2e12, "int8": 4e12}
SLOW_BF16 = {"fp32": 1e12, "bf16": 0.5e12, "int8": 2e12}
BUCKETS = {"batch": [1, 16], "sequence": [64, 128]}


def groups(**seconds: float) -> dict[str, Group]:
    return {
        name: Group(seconds=value, operations=1e12 * value / 2) for name, value in seconds.items()
    }


def call(**changes: Any) -> ProfiledShape:
    known = {
        **{"batch": 1, "sequence": 96, "call_s": 0.010, "padding": 0.0, "profiler_factor": 1.0},
        "shares": {"compute": 0.8, "memory": 0.1, "overhead": 0.1},
        "groups": groups(products=0.006, attention=0.002, elementwise=0.001),
    }
    return ProfiledShape(finish_s=0.0, **{**known, **changes})


def found(variant: str, *, cores: int = 2, peaks: Any = SLOW_BF16, **changes: Any) -> list[Cause]:
    options = changes.pop("options", {"buckets": None})
    return causes(Profiled(call(**changes), parse(variant), options, 2, cores, peaks))


def test_what_compute_bounds_shrinks_with_padding_and_at_most_memory_is_gone() -> None:
    options = {"buckets": BUCKETS, "blobs": 1}
    ((cause, change),) = found("cpu-openvino-fp32", options=options, padding=0.25)
    assert cause.cause == "25 % of the request is padding"
    assert cause.setting == "buckets: {batch: [1], sequence: [96]}"
    assert change.options == {"buckets": {"batch": [1], "sequence": [96]}, "blobs": 1}
    assert cause.low == pytest.approx(0.25 * 0.8)
    # attention of 3/4 of the tokens takes 9/16 of the time
    assert cause.high == pytest.approx(0.25 + 0.2 * (7 / 16 - 1 / 4) + 0.1 * 0.75)


def test_cores_that_are_idle_would_make_what_compute_bounds_faster() -> None:
    ((cause, change),) = found("cpu-onnxruntime-fp32", cores=8)
    assert (cause.cause, cause.setting) == ("2 of 8 cores are used", "threads: 8")
    assert change.threads == 8
    assert (cause.low, cause.high) == pytest.approx((0.75 * 0.8, 0.75))


def test_products_in_fp32_would_save_arithmetic_and_at_most_what_is_above_the_peak() -> None:
    ((cause, change),) = found("cpu-openvino-fp32", peaks=PEAKS)
    assert cause.cause == "products and attention in fp32: 80 % of the time"
    assert cause.setting == "engines: {openvino: [bf16]}"
    assert change.variant == "cpu-openvino-bf16"
    # operations of products at the peaks, 0.003e12: 3 ms in fp32, 1.5 ms in bf16, of 10 ms
    assert cause.low == pytest.approx(0.15)
    # those of attention too, 0.004e12, take at least 2 ms
    assert cause.high == pytest.approx(0.8 - 0.2 + 0.1 / 2)
    # of int8 it is attention that computes in fp32
    ((cause, change),) = found("cpu-openvino-int8-nncf-8", peaks=PEAKS)
    assert cause.cause == "attention in fp32: 20 % of the time"
    assert change.variant == "cpu-openvino-int8-bf16-nncf-8"
    assert (cause.low, cause.high) == pytest.approx((0.0, 0.2 - 0.05 + 0.1 / 2))


def test_what_saves_nothing_or_too_little_is_no_cause() -> None:
    assert found("cpu-openvino-fp32", peaks=SLOW_BF16) == []
    for engine in ("openvino-bf16", "onnxruntime-fp32", "inductor-int8-minmax-8"):
        assert found(f"cpu-{engine}", peaks=PEAKS) == []
    # what is fused or has no attention
    for fused, others in (
        (True, {"softmax": 0.002}),
        (False, {"attention": 0.003, "softmax": 0.002}),
        (False, {"elementwise": 0.003}),
    ):
        options, made = {"attention_operator": fused}, groups(products=0.006, **others)
        assert found("cpu-onnxruntime-fp32", options=options, groups=made) == []
    # without operator times, and less than a twentieth
    assert found("cpu-openvino-fp32", peaks=PEAKS, groups={}) == []
    assert found("cpu-openvino-fp32", options={"buckets": BUCKETS}, padding=0.05) == []


def test_attention_in_operators_of_its_own_would_at_most_save_all_between_products() -> None:
    separate = groups(products=0.006, softmax=0.001, moves=0.002, elementwise=0.0005)
    known = {"options": {"attention_operator": False, "arena": True}, "groups": separate}
    ((cause, change),) = found("cpu-onnxruntime-fp32", profiler_factor=0.5, **known)
    assert cause.setting == "onnxruntime: {attention_operator: true}"
    assert change.options == {"attention_operator": True, "arena": True}
    assert (cause.low, cause.high) == pytest.approx((0.0, 0.175))
