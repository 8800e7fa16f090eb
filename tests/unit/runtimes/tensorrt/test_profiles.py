from typing import Any

import pytest
from tightrope.errors import ConfigError
from tightrope.plan.profiles import check_profiles, profiles_of
from tightrope.runtimes.tensorrt.profiles import Profile, choose, covering

TWO = [
    {"batch": [1, 1, 8], "sequence": [1, 64, 128]},
    {"batch": [1, 64, 256], "sequence": [1, 32, 64]},
]


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
        "traffic": {
            "variants": ["cuda-tensorrt-fp16"] if traffic else [],
            "batch": traffic or 32,
        },
        **changes,
    }


def test_auto_is_one_profile_for_each_shape_tuned_for_it() -> None:
    profiles = profiles_of(config((1, 64), (16, 128)), "m")
    assert [one.opt for one in profiles] == [(1, 64), (16, 128)]


def test_auto_takes_every_request_in_every_profile() -> None:
    for profile in profiles_of(config((1, 64), (16, 32), longest=128), "m"):
        assert profile.holds(1, 1)
        assert profile.holds(16, 128)
        assert not profile.holds(17, 128)
        assert not profile.holds(16, 129)


def test_a_measured_sequence_may_be_longer_than_those_of_the_data() -> None:
    (profile,) = profiles_of(config((2, 512), longest=128), "m")
    assert profile.max == (2, 512)


def test_auto_takes_the_batches_of_the_traffic_on_tensorrt() -> None:
    assert profiles_of(config((1, 64), traffic=48), "m")[0].max[0] == 48
    assert profiles_of(config((1, 64)), "m")[0].max[0] == 1


def test_an_engine_of_one_profile_covers_all_and_is_tuned_for_the_largest_shape() -> None:
    profiles = profiles_of(config((1, 64), profiles=TWO), "m")
    assert covering(profiles) == Profile((1, 1), (64, 32), (256, 128))
    assert covering(profiles[:1]) == profiles[0]


def test_shapes_outside_the_profiles_are_refused_for_every_engine_that_has_them() -> None:
    def check(engine: str, provider: str = "cuda") -> None:
        asked = {"engines": {engine: ["fp16"]}, "onnxruntime": {"provider": provider}}
        check_profiles(config((16, 128), profiles=TWO, **asked))

    check("onnxruntime")
    for case in (("tensorrt",), ("onnxruntime", "tensorrt")):
        with pytest.raises(ConfigError, match=r"in none of tensorrt\.profiles"):
            check(*case)


def test_profiles_of_the_configuration_are_taken_as_they_are() -> None:
    assert profiles_of(config((1, 64), profiles=TWO), "m") == [
        Profile((1, 1), (1, 64), (8, 128)),
        Profile((1, 1), (64, 32), (256, 64)),
    ]


def test_a_profile_comes_back_from_a_document() -> None:
    profile = profiles_of(config((16, 64)), "m")[0]
    assert Profile.of([list(shape) for shape in profile]) == profile


@pytest.mark.parametrize(
    ("request_", "opt"),
    [
        ((1, 64), (1, 64)),
        ((1, 10), (1, 64)),
        ((16, 128), (16, 128)),
        ((15, 3), (16, 128)),
        ((3, 64), (1, 64)),
        ((5, 128), (16, 128)),
        ((1, 128), (1, 128)),
        ((1, 90), (1, 64)),
        ((1, 91), (1, 128)),
    ],
)
def test_a_request_goes_to_the_profile_tuned_for_the_nearest_shape(
    request_: tuple[int, int], opt: tuple[int, int]
) -> None:
    profiles = profiles_of(config((1, 64), (1, 128), (16, 128)), "m")
    assert profiles[choose(profiles, *request_)].opt == opt


def test_of_two_that_are_as_near_the_first_is_chosen() -> None:
    profiles = profiles_of(config((1, 32), (1, 128)), "m")
    assert choose(profiles, 1, 64) == 0
    assert choose(profiles[::-1], 1, 64) == 0


def test_a_near_profile_that_does_not_hold_the_request_is_not_chosen() -> None:
    profiles = profiles_of(config((1, 64), profiles=TWO), "m")
    assert choose(profiles, 9, 64) == 1
    assert choose(profiles, 8, 65) == 0


def test_a_request_in_no_profile_is_refused_with_the_range() -> None:
    profiles = profiles_of(config((256, 128), (1, 64)), "m")
    with pytest.raises(ValueError) as error:
        choose(profiles, 300, 64)
    assert str(error.value) == (
        "a request of 300x64: this engine was built for batches 1 to 256 and sequences 1 to 128 "
        "(`tensorrt.profiles`)"
    )


def test_a_request_between_two_profiles_is_refused_with_both_ranges() -> None:
    profiles = profiles_of(config((1, 64), profiles=TWO), "m")
    with pytest.raises(ValueError) as error:
        choose(profiles, 9, 65)
    assert "batches 1 to 8 and sequences 1 to 128, or batches 1 to 256 and" in str(error.value)


@pytest.mark.parametrize(
    "good",
    [
        config((1, 64), (16, 128)),
        config((1, 64), longest=512, traffic=64),
        config((1, 128), (8, 128), (256, 64), profiles=TWO),
        config((1, 64), profiles=TWO, traffic=256),
        # no engine of TensorRT is asked for
        config((9, 65), profiles=TWO, longest=4096, engines={"tensorrt": []}),
    ],
)
def test_profiles_that_hold_what_is_measured_are_accepted(good: dict[str, Any]) -> None:
    check_profiles(good)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (
            config((1, 64), profiles=[{"batch": [1, 8, 4], "sequence": [1, 64, 128]}]),
            "tensorrt.profiles[0].batch = [1, 8, 4]: not 1 <= min <= opt <= max",
        ),
        (
            config((1, 64), profiles=[TWO[0], {"batch": [1, 1, 1], "sequence": [0, 64, 128]}]),
            "tensorrt.profiles[1].sequence = [0, 64, 128]: not 1 <= min <= opt <= max",
        ),
        (
            config((16, 128), profiles=TWO),
            "shapes: 16x128: in none of tensorrt.profiles, which are for batches 1 to 8 and",
        ),
        (config((1, 64), profiles=TWO, longest=256), "models.m.max_sequence = 256: in none of"),
        (config((1, 64), profiles=TWO, traffic=512), "traffic.batch = 512: in none of"),
    ],
)
def test_profiles_that_do_not_fit_are_a_one_line_error_with_key_and_remedy(
    bad: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError) as error:
        check_profiles(bad)
    message = str(error.value)
    assert words in message
    assert message.startswith("config: ")
    assert "; " in message
    assert "\n" not in message
