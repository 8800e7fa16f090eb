import re
from typing import Any

import pytest
from tightrope.errors import ConfigError
from tightrope.plan.shapes import check_profiles, profiles_of
from tightrope.runtimes.shapes import Profile, choose

TWO = [
    {"batch": [1, 1, 8], "sequence": [1, 64, 128]},
    {"batch": [1, 64, 256], "sequence": [1, 32, 64]},
]

ONNXRUNTIME = {"engines": {"onnxruntime": ["fp16"]}}


def config(
    *shapes: tuple[int, int],
    profiles: Any = "auto",
    longest: int = 128,
    traffic: int | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """Shapes of (batch, sequence); with `traffic` that is the batch of measured traffic."""
    return {
        **{"host": "auto", "hosts": {}, "devices": "auto"},
        "tensorrt": {"profiles": profiles},
        "engines": {"tensorrt": ["fp16"]},
        "shapes": [{"batch": size, "sequence": tokens} for size, tokens in shapes],
        "models": {"m": {"task": "text-classification", "max_sequence": longest}},
        "traffic": {"variants": ["cuda-tensorrt-fp16"] if traffic else [], "batch": traffic or 32},
        **changes,
    }


def test_auto_is_a_profile_of_each_shape_alone_and_one_for_every_other_request() -> None:
    """Kernels must be valid for the whole range of a profile: a wide one excludes the fastest."""
    profiles = profiles_of(config((1, 64), (16, 32)), "m")
    fixed = [Profile(shape, shape, shape) for shape in ((1, 64), (16, 32))]
    assert profiles == [*fixed, Profile((1, 1), (16, 32), (16, 128))]
    asked = [(1, 64), (16, 32), (1, 63), (15, 32)]
    assert [choose(profiles, *request) for request in asked] == [0, 1, 2, 2]
    # a measured sequence may be longer than those of the data
    assert profiles_of(config((2, 512), longest=128), "m")[-1].max == (2, 512)
    # the batch of the traffic on TensorRT
    assert profiles_of(config((1, 64), traffic=48), "m")[-1].max[0] == 48
    assert profiles_of(config((1, 64)), "m")[-1].max[0] == 1


def test_a_request_in_no_profile_is_refused_with_the_ranges() -> None:
    profiles = profiles_of(config((1, 64), profiles=TWO), "m")
    ranges = "batches 1 to 8 and sequences 1 to 128, or batches 1 to 256 and sequences 1 to 64"
    words = f"a request of 9x65: this engine was built for {ranges} (`tensorrt.profiles`)"
    with pytest.raises(ValueError, match=re.escape(words)):
        choose(profiles, 9, 65)


@pytest.mark.parametrize(
    "good",
    [
        config((1, 128), (8, 128), (256, 64), profiles=TWO, traffic=256),
        # no engine of TensorRT is asked for
        config((9, 65), profiles=TWO, longest=4096, engines={"tensorrt": []}),
        config((16, 128), profiles=TWO, **ONNXRUNTIME, onnxruntime={"provider": "cuda"}),
    ],
)
def test_profiles_that_hold_what_is_measured_are_accepted(good: dict[str, Any]) -> None:
    check_profiles(good)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (
            config((1, 64), profiles=[TWO[0], {"batch": [1, 1, 1], "sequence": [0, 64, 128]}]),
            "tensorrt.profiles[1].sequence = [0, 64, 128]: not 1 <= min <= opt <= max",
        ),
        (
            config((16, 128), profiles=TWO),
            "shapes: 16x128: in none of tensorrt.profiles, which are for batches 1 to 8 and",
        ),
        (
            config((16, 128), profiles=TWO, **ONNXRUNTIME, onnxruntime={"provider": "tensorrt"}),
            "shapes: 16x128: in none of",
        ),
        (config((1, 64), profiles=TWO, longest=256), "models.m.max_sequence = 256: in none of"),
        (config((1, 64), profiles=TWO, traffic=512), "traffic.batch = 512: in none of"),
    ],
)
def test_profiles_that_do_not_fit_are_one_line(bad: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=f"^config: {re.escape(words)}.*; "):
        check_profiles(bad)
