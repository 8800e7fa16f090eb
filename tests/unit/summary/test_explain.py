"""Which groups of operators account for the difference between two profiled variants."""

from typing import Any

import pytest
from msgspec.structs import replace
from tightrope.decide.result import Shape
from tightrope.summary.profile import (
    Explanation,
    OperatorGroup,
    Profile,
    ProfiledCall,
    explanations,
)

FP32, INT8 = "cpu-onnxruntime-fp32", "cpu-onnxruntime-int8-minmax-512"
EAGER, OPENVINO = "cpu-pytorch-fp32", "cpu-openvino-int8-nncf-512"
MS = 1e-3
BASELINES = {"m": {"cpu": EAGER}}


def group(name: str, ms: float, call_ms: float, **types: float) -> OperatorGroup:
    shares = {kind: value / call_ms for kind, value in types.items()}
    return OperatorGroup(name, ms * MS, ms / call_ms, shares, operations=1.0, bytes=1.0, count=1)


def profile(
    variant: str, call_ms: float, *groups: OperatorGroup, sequence: int = 64, **changes: Any
) -> Profile:
    """A profile of one shape; what the groups do not take is outside."""
    inside = sum(one.seconds for one in groups) / MS
    shares = {"compute": 0.9, "memory": 0.1, "overhead": 0.0}
    known = {"bound": "compute", "shares": shares, "outside": 1 - inside / call_ms, "padding": 0.0}
    unknown = dict.fromkeys(ProfiledCall.__struct_fields__)
    fields = {**unknown, **known, "groups": list(groups), "operators": [], **changes}
    call = ProfiledCall(**{**fields, "shape": Shape(1, sequence), "call_s": call_ms * MS})
    return Profile("m", variant, "h", "ok", None, "2026-11-25T00:00:00+00:00", None, None, [call])


def fp32(call_ms: float = 10.0) -> Profile:
    return profile(FP32, call_ms, group("products", 8.0, call_ms, fp32=8.0))


def int8(**changes: Any) -> Profile:
    groups = [
        group("products", 4.0, 8.0, int8=4.0),
        group("conversions", 1.0, 8.0, fp32=1.0),
        group("attention", 2.0, 8.0, fp32=2.0),
    ]
    return profile(INT8, 8.0, *groups, **changes)


def only(*profiles: Any) -> Explanation:
    (found,) = explanations(profiles, BASELINES)
    return found


def test_quantization_is_told_what_it_costs_and_what_it_left_in_float() -> None:
    found = only(fp32(), int8())
    # the parts add up to the difference of the calls, with what is outside of operators
    assert found.saved_s == pytest.approx(2 * MS)
    assert sum(part.saved_s for part in found.parts) == pytest.approx(2 * MS)
    assert found.sentences == [
        f"2 ms faster than {FP32} (8 ms against 10 ms): products \N{MINUS SIGN}4 ms, "
        "attention +2 ms, conversions +1 ms.",
        "Conversions between types take 1 ms of the 4 ms that products save.",
        "Attention stays in fp32: 25 % of the time.",
    ]
    groups = group("products", 7.5, 9.0, int8=7.5), group("conversions", 1.0, 9.0, fp32=1.0)
    sentences = only(fp32(), profile(INT8, 9.0, *groups)).sentences
    more = "Conversions between types take 1 ms, more than the 0.5 ms that products save."
    assert sentences[1] == more
    half = profile(INT8, 8.0, group("products", 8.0, 8.0, int8=4.0, bf16=4.0))
    assert "Some products stay in bf16: 50 % of the time." in only(fp32(), half).sentences
    shares = {"compute": 0.3, "memory": 0.1, "overhead": 0.6}
    found = only(fp32(), int8(padding=0.58, bound="overhead", shares=shares))
    assert found.sentences[-2:] == [
        "Padding: 58 % of the tokens.",
        "60 % of the call is overhead, which no precision makes shorter.",
    ]


def test_what_quantization_costs_is_told_against_its_own_engine_only() -> None:
    best = profile(OPENVINO, 7.0, group("products", 7.0, 7.0, int8=7.0))
    found = explanations([int8(), best], BASELINES)
    assert [one.relation for one in found] == ["best"]
    assert not any("Conversions" in one for one in found[0].sentences)
    # calls that are alike are not explained
    (sentence,) = only(fp32(8.1), int8()).sentences
    assert sentence == f"As fast as {FP32} within 3 %: 8 ms against 8.1 ms."


def test_a_precision_that_the_cpu_only_emulates_is_the_first_cause() -> None:
    bf16 = profile("cpu-pytorch-bf16", 30.0, group("products", 29.0, 30.0, bf16=29.0))
    bf16.emulated = "not supported by this CPU: no bf16 instructions; it would be emulated"
    eager = profile(EAGER, 10.0, group("products", 9.0, 10.0, fp32=9.0))
    sentences = only(eager, bf16).sentences
    assert sentences[0].startswith("20 ms slower than cpu-pytorch-fp32 (30 ms against 10 ms)")
    assert sentences[1].startswith("bf16 is emulated: not supported by this CPU")


def test_each_pair_is_explained_once() -> None:
    others = [profile(name, ms) for name, ms in ((EAGER, 20.0), (OPENVINO, 5.0))]
    found = explanations([fp32(), int8(), *others], BASELINES)
    assert [(one.variant, one.against, one.relation) for one in found] == [
        (INT8, FP32, "float"),
        (OPENVINO, EAGER, "baseline"),
        (INT8, OPENVINO, "best"),
        (FP32, OPENVINO, "best"),
    ]


def test_what_is_not_profiled_or_of_another_model_host_or_shape_is_in_no_pair() -> None:
    unknown = {"bound": None, "shares": None, "outside": None, "groups": []}
    assert explanations([fp32(), int8(**unknown)], BASELINES) == []
    failed = replace(int8(), status="failed", shapes=[])
    assert explanations([fp32(), failed], BASELINES) == []
    others = [replace(int8(), model="n"), replace(int8(), host="i"), int8(sequence=128)]
    assert explanations([fp32(), *others], BASELINES) == []
