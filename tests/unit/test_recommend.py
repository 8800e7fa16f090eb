from typing import Any

import pytest
from tightrope.recommend import recommendations

SHAPE = {"batch": 1, "sequence": 64}
BASELINE = "cpu-pytorch-fp32"


def result(
    variant: str,
    ratio: float | None,
    *,
    low: float | None = None,
    size: int = 100,
    verdict: str | None = "kept",
    **changes: Any,
) -> dict[str, Any]:
    """A result that is `ratio` times as fast as a baseline of 10 ms."""
    speedup = ratio and {
        "ratio": ratio,
        "low": low or 0.98 * ratio,
        "high": ratio**2 / (low or 0.98 * ratio),
        "verdict": "faster",
    }
    change = {"delta": -0.02, "delta_low": -0.03, "delta_high": -0.011}
    return {
        "model": "m",
        "variant": variant,
        "baseline": BASELINE,
        "host": "h",
        "status": "ok",
        "reason": None,
        "size_bytes": size,
        "accuracy": verdict and {"verdict": verdict, **change},
        "latency": [{**SHAPE, "mean_s": 0.01 / (ratio or 1.0), "speedup": speedup}],
        **changes,
    }


def unavailable(variant: str) -> dict[str, Any]:
    """A result without a job: no host, no baseline, nothing measured."""
    words = {"status": "unavailable", "reason": "no NVIDIA GPU"}
    return result(variant, None, verdict=None, baseline=None, host=None, latency=[], **words)


def recommended(*results: dict[str, Any]) -> dict[str, Any]:
    (found,) = recommendations(list(results))
    found["reasons"] = {one["variant"]: one["reason"] for one in found["rejected"]}
    return found


def test_the_fastest_that_keeps_the_answers_is_chosen() -> None:
    found = recommended(
        result(BASELINE, None),
        result("cpu-pytorch-bf16", 2.0),
        result("cpu-openvino-fp32", 1.5),
        result("cpu-onnxruntime-int8-minmax-64", 4.0, verdict="dropped"),
        result("cpu-openvino-int8-nncf-64", 5.0, verdict="undecided"),
    )
    assert found["variant"] == "cpu-pytorch-bf16"
    assert found["why"] == "the fastest of the 3 variants that keep the answers"
    assert (found["model"], found["host"], found["shape"]) == ("m", "h", SHAPE)


def test_every_other_variant_is_rejected_with_its_reason() -> None:
    found = recommended(
        result(BASELINE, None),
        result("cpu-pytorch-bf16", 4.0),
        result("cpu-openvino-fp32", 1.5),
        result("cpu-onnxruntime-int8-minmax-64", 4.0, verdict="dropped"),
        result("cpu-openvino-int8-nncf-64", 5.0, verdict="undecided"),
        result("cpu-onnxruntime-fp32", None, status="failed", reason="too slow", latency=[]),
        unavailable("cuda-pytorch-fp32"),
    )
    assert found["reasons"] == {
        BASELINE: "slower: it is the baseline",
        "cpu-openvino-fp32": "slower: 1.50 times the baseline (1.47 to 1.53)",
        "cpu-onnxruntime-int8-minmax-64": (
            "accuracy dropped: \N{MINUS SIGN}2.0 points (\N{MINUS SIGN}3.0 to \N{MINUS SIGN}1.1)"
        ),
        "cpu-openvino-int8-nncf-64": (
            "accuracy undecided: \N{MINUS SIGN}2.0 points (\N{MINUS SIGN}3.0 to \N{MINUS SIGN}1.1)"
        ),
        "cpu-onnxruntime-fp32": "failed: too slow",
        "cuda-pytorch-fp32": "unavailable: no NVIDIA GPU",
    }


def test_a_variant_slower_than_the_winners_interval_is_called_slower_and_nothing_else() -> None:
    found = recommended(
        result(BASELINE, None, size=500),
        result("cpu-pytorch-bf16", 1.1, size=400),
        result("cpu-openvino-fp32", 3.0, size=100),
        result("cpu-onnxruntime-fp32", 1.9, low=0.5, size=300),
    )
    assert found["variant"] == "cpu-openvino-fp32"
    assert [reason.split(":")[0] for reason in found["reasons"].values()] == ["slower"] * 3


def test_a_tie_goes_to_the_smaller_files() -> None:
    found = recommended(
        result(BASELINE, None),
        result("cpu-openvino-fp32", 3.0, low=2.79, size=400),
        result("cpu-openvino-bf16", 2.8, size=200),
        result("cpu-openvino-int8-nncf-64", 2.6, size=50),
    )
    assert found["variant"] == "cpu-openvino-bf16"
    assert found["why"] == (
        "as fast as cpu-openvino-fp32 within the noise, and its files are smaller"
    )
    assert found["reasons"]["cpu-openvino-fp32"] == (
        "as fast within the noise (3.00 times the baseline (2.79 to 3.23)), "
        "but its files are no smaller"
    )
    assert found["reasons"]["cpu-openvino-int8-nncf-64"].startswith("slower: 2.60 times")


def test_a_wide_interval_wins_nothing_and_makes_no_ties() -> None:
    found = recommended(
        result(BASELINE, None),
        result("cpu-openvino-fp32", 7.4, low=3.5, size=400),
        result("cpu-openvino-bf16", 6.1, low=5.5, size=500),
        result("cpu-onnxruntime-fp32", 4.0, size=50),
    )
    assert found["variant"] == "cpu-openvino-fp32"
    assert found["why"].startswith("as fast as cpu-openvino-bf16 within the noise")
    assert found["reasons"]["cpu-onnxruntime-fp32"].startswith("slower: 4.00 times")


def test_a_tie_of_equal_size_goes_to_the_faster() -> None:
    found = recommended(
        result(BASELINE, None),
        result("cpu-openvino-fp32", 2.95, size=200),
        result("cpu-openvino-bf16", 3.0, size=200),
    )
    assert found["variant"] == "cpu-openvino-bf16"
    assert found["why"].startswith("the fastest of the 3")
    assert "but its files are no smaller" in found["reasons"]["cpu-openvino-fp32"]


def test_the_baseline_is_chosen_where_nothing_is_faster() -> None:
    found = recommended(result(BASELINE, None), result("cpu-openvino-fp32", 0.8))
    assert found["variant"] == BASELINE
    assert found["why"] == (
        "none of the 2 variants that keep the answers is faster than this baseline"
    )
    assert found["reasons"] == {
        "cpu-openvino-fp32": "slower: 0.80 times the baseline (0.78 to 0.82)"
    }


@pytest.mark.parametrize(("size", "winner"), [(101, BASELINE), (99, "cpu-openvino-fp32")])
def test_a_tie_with_the_baseline_goes_to_the_smaller_files_too(size: int, winner: str) -> None:
    found = recommended(
        result(BASELINE, None, size=100),
        result("cpu-openvino-fp32", 1.02, low=0.97, size=size),
    )
    assert found["variant"] == winner
    (reason,) = found["reasons"].values()
    assert reason.startswith("as fast within the noise (")


def test_nothing_is_chosen_where_no_variant_qualifies() -> None:
    found = recommended(
        result(BASELINE, None, status="failed", reason="too slow"),
        result("cpu-openvino-fp32", 3.0, verdict="dropped"),
    )
    assert (found["variant"], found["why"]) == (None, "no variant keeps the answers")
    assert set(found["reasons"]) == {BASELINE, "cpu-openvino-fp32"}


def test_without_labels_speed_alone_decides() -> None:
    found = recommended(
        result(BASELINE, None, verdict=None), result("cpu-openvino-fp32", 3.0, verdict=None)
    )
    assert found["variant"] == "cpu-openvino-fp32"


def test_without_a_baseline_the_times_of_calls_are_compared() -> None:
    slow, quick = result("cpu-openvino-fp32", 1.0), result("cpu-onnxruntime-fp32", 2.0)
    for one in (slow, quick):
        one["latency"][0]["speedup"] = one["accuracy"] = None
    lost = result(BASELINE, None, status="failed", reason="killed", latency=[])
    found = recommended(lost, slow, quick)
    assert found["variant"] == "cpu-onnxruntime-fp32"
    assert found["why"] == "the fastest of the 2 variants measured"
    assert found["reasons"]["cpu-openvino-fp32"] == "slower: 10 ms a call"


def test_accuracy_that_could_not_be_compared_is_no_reason_to_deploy() -> None:
    unknown = {"verdict": "undecided", "delta": None, "delta_low": None, "delta_high": None}
    found = recommended(result(BASELINE, None), result("cpu-openvino-fp32", 3.0, accuracy=unknown))
    assert found["variant"] == BASELINE
    assert found["reasons"] == {
        "cpu-openvino-fp32": "accuracy undecided: its baseline has no predictions"
    }


def test_the_baseline_is_the_one_that_the_results_name() -> None:
    """A model that is an ONNX file only has no PyTorch variant."""
    own = {"baseline": "cpu-onnxruntime-fp32"}
    found = recommended(
        result("cpu-onnxruntime-fp32", None, **own), result("cpu-openvino-fp32", 0.8, **own)
    )
    assert found["variant"] == "cpu-onnxruntime-fp32"
    assert found["why"].endswith("is faster than this baseline")
    assert found["reasons"] == {
        "cpu-openvino-fp32": "slower: 0.80 times the baseline (0.78 to 0.82)"
    }


def test_a_variant_that_is_the_baseline_of_another_model_is_none_of_this_one() -> None:
    own = {"baseline": "cpu-onnxruntime-fp32", "model": "onnx-only"}
    found = recommendations(
        [
            result(BASELINE, None),
            result("cpu-onnxruntime-fp32", 0.5),
            result("cpu-onnxruntime-fp32", None, **own),
            result("cpu-openvino-fp32", 0.8, **own),
        ]
    )
    assert [(one["model"], one["variant"]) for one in found] == [
        ("m", BASELINE),
        ("onnx-only", "cpu-onnxruntime-fp32"),
    ]
    assert found[0]["rejected"][0]["reason"].startswith("slower: 0.50 times the baseline")


def test_each_device_is_measured_against_its_own_baseline() -> None:
    """Ten times a slow baseline is not more than three times one that is five times as fast."""
    far = {"baseline": "cuda-pytorch-fp32"}
    slow = result("cuda-pytorch-fp32", None, **far)
    slow["latency"][0]["mean_s"] = 0.05
    found = recommended(
        result(BASELINE, None),
        result("cpu-openvino-fp32", 3.0),
        slow,
        result("cuda-tensorrt-fp16", 10.0, **far),
    )
    assert found["variant"] == "cpu-openvino-fp32"
    assert found["reasons"]["cuda-pytorch-fp32"] == "slower: it is the baseline"
    assert found["reasons"]["cuda-tensorrt-fp16"].startswith("slower: 10.00 times the baseline")


def test_a_machine_that_drifted_between_two_measurements_does_not_choose() -> None:
    """Variants are ordered by their paired speed-ups, not by their times."""
    early = result("cpu-openvino-fp32", 3.0)
    late = result("cpu-openvino-bf16", 2.0)
    late["latency"][0]["mean_s"] = 0.001
    assert recommended(result(BASELINE, None), early, late)["variant"] == "cpu-openvino-fp32"


def test_each_model_and_shape_has_its_recommendation() -> None:
    long = {"batch": 16, "sequence": 128}

    def rows(short_ratio: float, long_ratio: float) -> list[dict[str, Any]]:
        return [
            {**result("cpu-openvino-fp32", ratio)["latency"][0], **shape}
            for shape, ratio in ((SHAPE, short_ratio), (long, long_ratio))
        ]

    found = recommendations(
        [
            result("cpu-openvino-fp32", 1, latency=rows(3.0, 1.5)),
            result("cpu-openvino-bf16", 1, latency=rows(2.0, 4.0)),
            result("cpu-openvino-fp32", 2.0, model="other"),
        ]
    )
    assert [(one["model"], one["shape"], one["variant"]) for one in found] == [
        ("m", SHAPE, "cpu-openvino-fp32"),
        ("m", long, "cpu-openvino-bf16"),
        ("other", SHAPE, "cpu-openvino-fp32"),
    ]


def test_each_host_has_its_recommendation_from_its_own_measurements() -> None:
    found = recommendations(
        [
            result(BASELINE, None),
            result("cpu-openvino-fp32", 3.0),
            result("cpu-openvino-bf16", 4.0, host="other"),
            unavailable("cuda-pytorch-fp32"),
        ]
    )
    assert [(one["host"], one["variant"]) for one in found] == [
        ("h", "cpu-openvino-fp32"),
        ("other", "cpu-openvino-bf16"),
    ]
    others = [{entry["variant"] for entry in one["rejected"]} for one in found]
    assert others == [{BASELINE, "cuda-pytorch-fp32"}, {"cuda-pytorch-fp32"}]


def test_a_variant_without_this_shape_is_rejected_for_that() -> None:
    other = [{**SHAPE, "batch": 8, "mean_s": 0.001, "speedup": None}]
    found = recommendations(
        [result(BASELINE, None), result("cpu-openvino-fp32", 9.0, latency=other)]
    )
    reasons = {one["variant"]: one["reason"] for one in found[0]["rejected"]}
    assert found[0]["variant"] == BASELINE
    assert reasons == {"cpu-openvino-fp32": "not measured at this shape"}


FLOAT, INT8 = "cpu-onnxruntime-fp32", "cpu-onnxruntime-int8-minmax-64"


def side_by_side(ratio: float, spread: float = 0.03) -> dict[str, Any]:
    """A row in which the quantized variant is `ratio` times as fast as the one in float."""
    ends = {"low": ratio * (1 - spread), "high": ratio * (1 + spread)}
    return {**SHAPE, "speedup": {"ratio": ratio, **ends, "verdict": "faster"}}


@pytest.mark.parametrize(("ratio", "chosen", "beaten"), [(0.8, FLOAT, INT8), (1.2, INT8, FLOAT)])
def test_of_two_that_were_side_by_side_the_slower_is_not_chosen_whatever_the_others_say(
    ratio: float, chosen: str, beaten: str
) -> None:
    results = [result(BASELINE, None), result(FLOAT, 3.0), result(INT8, 3.0)]
    next(one for one in results if one["variant"] == beaten)["latency"][0]["speedup"]["low"] = 9.0
    (found,) = recommendations(results)
    assert found["variant"] == beaten
    (found,) = recommendations(results, {("m", "h", INT8, FLOAT): [side_by_side(ratio)]})
    assert found["variant"] == chosen
    assert found["why"] == "the fastest of the 3 variants that keep the answers"
    (reason,) = [one["reason"] for one in found["rejected"] if one["variant"] == beaten]
    word = "in float" if ratio < 1 else "quantized"
    assert reason.startswith(f"slower than its engine {word}: side by side, {INT8} is {ratio:.2f}")


def test_a_tie_side_by_side_leaves_both() -> None:
    results = [result(BASELINE, None), result(FLOAT, 3.0), result(INT8, 3.0, size=50)]
    (found,) = recommendations(results, {("m", "h", INT8, FLOAT): [side_by_side(1.01)]})
    assert found["variant"] == INT8


def test_a_faster_variant_whose_answers_are_lost_beats_nothing_side_by_side() -> None:
    results = [result(BASELINE, None), result(FLOAT, 3.0), result(INT8, 4.0, verdict="dropped")]
    (found,) = recommendations(results, {("m", "h", INT8, FLOAT): [side_by_side(1.3)]})
    assert found["variant"] == FLOAT


def test_where_each_was_slower_than_another_all_of_them_stay() -> None:
    other = "cpu-onnxruntime-int8-dynamic"
    plain = "cpu-onnxruntime-fp16"
    results = [result(one, 3.0) for one in (FLOAT, INT8, other, plain)]
    ratios = {(INT8, FLOAT): 0.8, (other, FLOAT): 1.2, (INT8, plain): 1.2, (other, plain): 0.8}
    compared = {("m", "h", *pair): [side_by_side(ratio)] for pair, ratio in ratios.items()}
    (found,) = recommendations(results, compared)
    assert found["variant"] is not None
