"""Whether to quantize, from results built by hand: each engine against itself in float."""

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from tightrope.quantization import quantizations, quotient
from tightrope.recommend import recommendations
from tightrope.statistics import Z
from tightrope.variants import PRECISIONS, QUANTIZED, UNQUANTIZED, parse

EXAMPLE = Path(__file__).parents[1] / "data/summary.json"
SHAPE = {"batch": 1, "sequence": 64}
LARGE = {"batch": 16, "sequence": 64}
BASELINE = "cpu-pytorch-fp32"
FLOAT, INT8 = "cpu-onnxruntime-fp32", "cpu-onnxruntime-int8-minmax-64"
DYNAMIC, AUTO = "cpu-onnxruntime-int8-dynamic", "cpu-onnxruntime-int8-auto-minmax-64"
DELTAS = {"kept": -0.002, "undecided": -0.012, "dropped": -0.05}


def row(ratio: float | None, spread: float = 0.02, shape: dict = SHAPE) -> dict[str, Any]:
    """A latency `ratio` times as fast as a baseline of 10 ms, within `spread` on the log scale."""
    speedup = ratio and {
        "ratio": ratio,
        "low": ratio * math.exp(-spread),
        "high": ratio * math.exp(spread),
        "verdict": "faster",
    }
    return {**shape, "mean_s": 0.01 / (ratio or 1.0), "speedup": speedup, "noisy": False}


def result(
    variant: str, *rows: dict[str, Any], verdict: str | None = "kept", **changes: Any
) -> dict[str, Any]:
    """What the summary has of a variant; all its records are from host h."""
    delta = DELTAS.get(verdict)
    accuracy = verdict and {
        "top1": 0.9 + delta,
        "samples": 1500,
        "delta": delta,
        "delta_low": delta - 0.006,
        "delta_high": delta + 0.006,
        "flips": 30,
        "verdict": verdict,
    }
    names = {"model": "m", "variant": variant, **parse(variant)._asdict()}
    facts = {"baseline": BASELINE, "host": "h", "status": "ok", "reason": None}
    own = {"size_bytes": 100, "accuracy": accuracy, "latency": list(rows)}
    return {**names, **facts, **own, **changes}


def failed(variant: str, reason: str, **changes: Any) -> dict[str, Any]:
    lost = {"status": "failed", "reason": reason, "verdict": None}
    return result(variant, **{**lost, **changes})


def entries(*results: dict[str, Any], **changes: Any) -> list[dict[str, Any]]:
    return quantizations([result(BASELINE, row(None), **changes), *results])


def entry(*results: dict[str, Any]) -> dict[str, Any]:
    (found,) = entries(*results)
    return found


def test_every_precision_is_either_quantized_or_not() -> None:
    assert sorted((*QUANTIZED, *UNQUANTIZED)) == sorted(PRECISIONS)


def test_surely_faster_with_the_answers_kept_is_worth_it() -> None:
    found = entry(result(FLOAT, row(1.2)), result(INT8, row(2.4)))
    assert {name: found[name] for name in ("model", "host", "device", "engine", "shape")} == {
        "model": "m",
        "host": "h",
        "device": "cpu",
        "engine": "onnxruntime",
        "shape": SHAPE,
    }
    assert (found["variant"], found["unquantized"], found["others"]) == (INT8, FLOAT, [])
    assert found["verdict"] == "quantize"
    assert found["why"] == [f"faster than {FLOAT}", "accuracy kept"]
    assert (found["failed"], found["noisy"]) == (None, False)
    assert found["accuracy"] == {
        "delta": -0.002,
        "delta_low": -0.008,
        "delta_high": pytest.approx(0.004),
        "flips": 30,
        "samples": 1500,
        "verdict": "kept",
    }


def test_the_intervals_of_both_speed_ups_add_up_on_the_log_scale() -> None:
    speedup = entry(result(FLOAT, row(1.2, 0.03)), result(INT8, row(2.4, 0.05)))["speedup"]
    assert speedup["ratio"] == pytest.approx(2.0)
    assert math.log(speedup["low"]) == pytest.approx(math.log(2) - 0.08)
    assert math.log(speedup["high"]) == pytest.approx(math.log(2) + 0.08)
    assert speedup["verdict"] == "faster"


@pytest.mark.parametrize("correlation", [-1.0, 0.0, 1.0])
def test_the_interval_holds_the_truth_as_often_as_it_says_whatever_the_correlation(
    correlation: float,
) -> None:
    """Of two estimates with normal errors on the log scale, each with its 95 % interval."""
    draw, truth, errors, held = random.Random(0), (1.2, 1.8), (0.03, 0.02), 0
    for _ in range(2000):
        first, other = draw.gauss(0, 1), draw.gauss(0, 1)
        second = correlation * first + math.sqrt(1 - correlation**2) * other
        ratios = [
            true * math.exp(error * one)
            for true, error, one in zip(truth, errors, (first, second), strict=True)
        ]
        rows = {
            name: {**row(ratio, Z * error), "baseline": BASELINE}
            for name, ratio, error in zip((FLOAT, INT8), ratios, errors, strict=True)
        }
        speedup = quotient(INT8, FLOAT, rows)
        held += speedup["low"] <= truth[1] / truth[0] <= speedup["high"]
    # errors that are opposite are the worst case, in which it is exact
    assert held / 2000 >= 0.94
    assert (held / 2000 < 0.96) == (correlation == -1.0)


def test_beside_the_baseline_itself_the_interval_is_the_paired_one() -> None:
    dynamic = "cpu-pytorch-int8-dynamic"
    found = entry(result(dynamic, row(1.5)))
    assert (found["unquantized"], found["variant"]) == (BASELINE, dynamic)
    paired = row(1.5)["speedup"]
    assert (found["speedup"], found["paired"]) == (paired, True)


def test_side_by_side_decides_whatever_their_speed_ups_over_the_baseline_say() -> None:
    """The machine was slower while the float variant was measured, and PyTorch most of all."""
    results = [
        result(BASELINE, row(None)),
        result(FLOAT, row(6.1), row(2.4, shape=LARGE)),
        result(INT8, row(5.2), row(2.8, shape=LARGE)),
    ]
    side_by_side = {("m", "h", INT8, FLOAT): [row(1.15)]}
    first, large = quantizations(results, side_by_side)
    assert (first["verdict"], first["paired"]) == ("quantize", True)
    assert first["speedup"] == row(1.15)["speedup"]
    assert first["why"] == [f"faster than {FLOAT}", "accuracy kept"]
    # not timed side by side at this shape
    assert (large["verdict"], large["paired"]) == ("quantize", False)
    assert large["speedup"]["ratio"] == pytest.approx(2.8 / 2.4)
    (alone, _) = quantizations(results)
    assert (alone["verdict"], alone["paired"]) == ("do not quantize", False)


@pytest.mark.parametrize("place", [("n", "h", INT8, FLOAT), ("m", "k", INT8, FLOAT)])
def test_what_was_timed_with_another_model_or_elsewhere_says_nothing(place: tuple) -> None:
    results = [result(BASELINE, row(None)), result(FLOAT, row(2.0)), result(INT8, row(1.0))]
    (found,) = quantizations(results, {place: [row(3.0)]})
    assert (found["verdict"], found["paired"]) == ("do not quantize", False)


def test_side_by_side_with_another_float_variant_is_not_with_the_best() -> None:
    bf16, fp32, int8 = (f"cpu-openvino-{one}" for one in ("bf16", "fp32", "int8-nncf-64"))
    results = [result(BASELINE, row(None))]
    results += [result(bf16, row(3.0)), result(fp32, row(2.0)), result(int8, row(3.6))]
    ratios = {bf16: 1.1, fp32: 1.7}
    compared = {("m", "h", int8, name): [row(ratio)] for name, ratio in ratios.items()}
    (found,) = quantizations(results, compared)
    assert (found["unquantized"], found["speedup"]["ratio"]) == (bf16, 1.1)


def test_side_by_side_its_own_noise_counts_and_no_other() -> None:
    results = [result(BASELINE, row(None))]
    results += [result(one, {**row(1.0), "noisy": True}) for one in (FLOAT, INT8)]
    for noisy in (True, False):
        compared = {("m", "h", INT8, FLOAT): [{**row(1.5), "noisy": noisy}]}
        (found,) = quantizations(results, compared)
        assert found["noisy"] is noisy


@pytest.mark.parametrize(("ratio", "word"), [(0.8, "slower"), (1.0, "no faster")])
def test_what_is_surely_not_faster_is_not_worth_it_though_the_answers_are_kept(
    ratio: float, word: str
) -> None:
    found = entry(result(FLOAT, row(1.5, 0.0)), result(INT8, row(1.5 * ratio, 0.0)))
    assert found["verdict"] == "do not quantize"
    assert found["why"] == [f"{word} than {FLOAT}", "accuracy kept"]


def test_a_tie_is_undecided() -> None:
    found = entry(result(FLOAT, row(1.5, 0.03)), result(INT8, row(1.55, 0.03)))
    assert (found["verdict"], found["speedup"]["verdict"]) == ("undecided", "tie")
    assert found["why"] == [f"not surely faster than {FLOAT}", "accuracy kept"]


def test_faster_than_the_baseline_is_not_faster_than_the_engine_in_float() -> None:
    """What speed-ups over PyTorch hide: all of the gain is the engine's, none that of INT8."""
    found = entry(result(FLOAT, row(3.0)), result(INT8, row(2.5)))
    assert found["verdict"] == "do not quantize"
    assert found["speedup"]["high"] < 1


def test_two_speed_ups_that_are_each_certain_can_leave_their_quotient_open() -> None:
    found = entry(result(FLOAT, row(1.5, 0.04)), result(INT8, row(1.6, 0.04)))
    assert found["speedup"]["low"] < 1 < found["speedup"]["high"]


def test_dropped_answers_are_not_worth_any_speed() -> None:
    found = entry(result(FLOAT, row(1.0)), result(INT8, row(4.0), verdict="dropped"))
    assert found["verdict"] == "do not quantize"
    assert found["why"] == [f"faster than {FLOAT}", "accuracy dropped"]


def test_a_speed_up_with_undecided_answers_is_undecided() -> None:
    found = entry(result(FLOAT, row(1.0)), result(INT8, row(4.0), verdict="undecided"))
    assert found["verdict"] == "undecided"
    assert found["why"] == [f"faster than {FLOAT}", "accuracy undecided: more samples can tell"]


def test_all_reasons_that_hold_are_given() -> None:
    reason = "collapsed: one answer to 98 % of 128 examples"
    both = entry(result(FLOAT, row(1.5)), result(INT8, row(1.0), verdict="dropped"))
    assert both["why"] == [f"slower than {FLOAT}", "accuracy dropped"]
    slow = entry(result(FLOAT, row(1.5)), result(INT8, row(1.0), verdict="undecided"))
    assert slow["verdict"] == "do not quantize"
    assert slow["why"][0] == f"slower than {FLOAT}" and "undecided" in slow["why"][1]
    lost = failed(INT8, reason, verdict="dropped", latency=[row(1.0)])
    found = entry(result(FLOAT, row(1.5)), lost)
    assert found["why"] == [f"failed: {reason}", f"slower than {FLOAT}", "accuracy dropped"]


def test_where_all_failed_their_reasons_are_told() -> None:
    found = entry(
        result(FLOAT, row(1.5)),
        failed(INT8, "collapsed: chance", verdict="dropped"),
        failed(DYNAMIC, "killed: out of memory"),
    )
    assert (found["verdict"], found["variant"]) == ("do not quantize", DYNAMIC)
    assert found["why"] == ["failed: killed: out of memory"]
    assert (found["failed"], found["speedup"]) == ("killed: out of memory", None)
    (other,) = found["others"]
    assert (other["variant"], other["verdict"]) == (INT8, "do not quantize")
    assert other["why"] == ["failed: collapsed: chance", "accuracy dropped"]


def test_one_failed_variant_does_not_speak_for_the_engine() -> None:
    found = entry(result(FLOAT, row(1.5)), failed(DYNAMIC, "killed"), result(INT8, row(3.0)))
    assert (found["verdict"], found["variant"]) == ("quantize", INT8)
    assert [one["variant"] for one in found["others"]] == [DYNAMIC]


def test_the_variant_is_the_fastest_of_those_with_the_best_verdict() -> None:
    found = entry(
        result(FLOAT, row(1.0)),
        result(INT8, row(5.0), verdict="dropped"),
        result("cpu-onnxruntime-int8-entropy-64", row(4.0), verdict="undecided"),
        result(DYNAMIC, row(2.0)),
        result(AUTO, row(3.0)),
    )
    assert (found["variant"], found["verdict"]) == (AUTO, "quantize")
    assert [(one["variant"], one["verdict"]) for one in found["others"]] == [
        (DYNAMIC, "quantize"),
        ("cpu-onnxruntime-int8-entropy-64", "undecided"),
        (INT8, "do not quantize"),
    ]


def test_a_slow_variant_does_not_condemn_an_engine_that_has_an_undecided_one() -> None:
    found = entry(
        result(FLOAT, row(2.0)), result(AUTO, row(1.0)), result(INT8, row(4.0), verdict="undecided")
    )
    assert (found["variant"], found["verdict"]) == (INT8, "undecided")


def test_of_equally_fast_variants_the_smaller_one_is_named() -> None:
    small = result(DYNAMIC, row(2.99, 0.03), size_bytes=50)
    found = entry(result(FLOAT, row(1.0)), result(INT8, row(3.0, 0.03)), small)
    assert found["variant"] == DYNAMIC


def test_it_is_put_against_the_best_of_the_same_engine_in_float() -> None:
    found = entries(
        result("cpu-openvino-fp32", row(1.5)),
        result("cpu-openvino-bf16", row(4.0)),
        result("cpu-openvino-int8-nncf-64", row(3.0)),
        result(FLOAT, row(1.0)),
        result(INT8, row(2.0)),
    )
    assert [(one["engine"], one["unquantized"], one["verdict"]) for one in found] == [
        ("openvino", "cpu-openvino-bf16", "do not quantize"),
        ("onnxruntime", FLOAT, "quantize"),
    ]


def test_a_float_variant_whose_answers_dropped_is_no_rival() -> None:
    found = entry(
        result("cpu-openvino-fp32", row(1.5)),
        result("cpu-openvino-bf16", row(4.0), verdict="dropped"),
        result("cpu-openvino-int8-nncf-64", row(3.0)),
    )
    assert (found["unquantized"], found["verdict"]) == ("cpu-openvino-fp32", "quantize")


def test_being_slower_than_what_may_be_no_choice_decides_nothing() -> None:
    bf16, int8 = "cpu-openvino-bf16", "cpu-openvino-int8-nncf-64"
    own = result(bf16, row(4.0), verdict="undecided")
    found = entry(own, result(int8, row(3.0)))
    assert (found["verdict"], found["unquantized"]) == ("undecided", bf16)
    assert found["why"][-1] == f"the accuracy of {bf16} itself is undecided"
    alike = entry(own, result(int8, row(3.0), verdict="undecided"))
    assert alike["verdict"] == "do not quantize"


def test_without_labels_speed_alone_decides_and_it_says_so() -> None:
    told = "accuracy was not judged: speed alone decides"
    for ratio, verdict in ((2.0, "quantize"), (1.0, "undecided"), (0.5, "do not quantize")):
        (found,) = entries(
            result(FLOAT, row(1.0), verdict=None),
            result(INT8, row(ratio), verdict=None),
            verdict=None,
        )
        assert (found["verdict"], found["accuracy"]) == (verdict, None)
        assert found["why"][-1] == told


def test_each_shape_has_a_verdict_of_its_own() -> None:
    short, long = entries(
        result(FLOAT, row(1.0), row(2.0, shape=LARGE)),
        result(INT8, row(2.0), row(1.0, shape=LARGE)),
    )
    assert (short["shape"], short["verdict"]) == (SHAPE, "quantize")
    # the baseline was not measured at this shape, their speed-ups over it were
    assert (long["shape"], long["verdict"]) == (LARGE, "do not quantize")


def test_images_have_shapes_too() -> None:
    shape = {"batch": 1, "height": 224, "width": 224}
    found = quantizations(
        [result(FLOAT, row(2.0, shape=shape)), result(INT8, row(1.0, shape=shape))]
    )
    assert [one["shape"] for one in found] == [shape]


def test_a_shape_at_which_only_the_float_variant_was_measured_is_undecided() -> None:
    _, other = entries(result(FLOAT, row(1.0), row(1.0, shape=LARGE)), result(INT8, row(2.0)))
    assert (other["shape"], other["verdict"]) == (LARGE, "undecided")
    assert other["why"] == ["not measured at this shape", "accuracy kept"]


def test_without_the_baseline_speed_cannot_be_told_but_dropped_answers_can() -> None:
    lost = failed(BASELINE, "killed")
    alone = [{**row(ratio), "speedup": None} for ratio in (1.0, 2.0)]
    float_one = result(FLOAT, alone[0])
    (found,) = quantizations([lost, float_one, result(INT8, alone[1])])
    assert (found["verdict"], found["speedup"]) == ("undecided", None)
    assert found["why"][0] == f"not compared with {FLOAT}: their baseline was not measured"
    (found,) = quantizations([lost, float_one, result(INT8, alone[1], verdict="dropped")])
    assert found["verdict"] == "do not quantize"


def test_an_accuracy_that_could_not_be_compared_is_undecided() -> None:
    lacking = result(INT8, row(2.0), verdict="undecided")
    unknown = ("delta", "delta_low", "delta_high", "flips")
    lacking["accuracy"] |= dict.fromkeys(unknown)
    found = entry(result(FLOAT, row(1.0)), lacking)
    assert found["verdict"] == "undecided"
    assert found["why"][1] == "accuracy undecided: its baseline has no predictions"


def test_hosts_and_devices_are_never_mixed() -> None:
    far = {"baseline": "cuda-pytorch-fp32", "host": "k"}
    found = entries(
        result(FLOAT, row(1.0)),
        result(INT8, row(2.0)),
        result(BASELINE, row(None), host="k"),
        result(FLOAT, row(2.0), host="k"),
        result(INT8, row(1.0), host="k"),
        result("cuda-pytorch-fp32", row(None), **far),
        result("cuda-tensorrt-fp16", row(9.0), **far),
        result("cuda-tensorrt-fp8-minmax-64", row(14.0), **far),
        result("cuda-tensorrt-int8-fp16-minmax-64", row(12.0), **far),
    )
    assert [(one["host"], one["device"], one["engine"], one["verdict"]) for one in found] == [
        ("h", "cpu", "onnxruntime", "quantize"),
        ("k", "cpu", "onnxruntime", "do not quantize"),
        ("k", "cuda", "tensorrt", "quantize"),
    ]
    assert found[2]["variant"] == "cuda-tensorrt-fp8-minmax-64"
    assert found[2]["unquantized"] == "cuda-tensorrt-fp16"


def test_an_engine_without_both_kinds_has_no_entry() -> None:
    missing = {"host": None, "baseline": None, "status": "unavailable", "reason": "no nncf"}
    assert (
        entries(
            result(FLOAT, row(2.0)),
            result("cpu-openvino-int8-nncf-64", row(3.0)),
            failed("cpu-inductor-fp32", "no compiler"),
            result("cpu-inductor-int8-minmax-64", row(3.0)),
            result(DYNAMIC, verdict=None, **missing),
        )
        == []
    )


def test_a_noisy_latency_of_either_is_told() -> None:
    for one, other in ((True, False), (False, True)):
        found = entry(
            result(FLOAT, {**row(1.0), "noisy": one}), result(INT8, {**row(2.0), "noisy": other})
        )
        assert found["noisy"] is True


def test_models_are_apart() -> None:
    found = entries(
        result(FLOAT, row(1.0)),
        result(INT8, row(2.0), model="n"),
        result(FLOAT, row(1.0), model="n"),
    )
    assert [one["model"] for one in found] == ["n"]


def test_what_is_recommended_is_never_called_not_worth_quantizing() -> None:
    """Over many speeds, spreads and verdicts of one engine's float and quantized variant."""
    checked = 0
    for ratio in (0.7, 0.95, 1.0, 1.05, 1.5):
        for spread in (0.0, 0.02, 0.3):
            for verdict in DELTAS:
                for rival in DELTAS:
                    results = [
                        result(BASELINE, row(None)),
                        result(FLOAT, row(1.3, 0.02), verdict=rival, size_bytes=400),
                        result(INT8, row(1.3 * ratio, spread), verdict=verdict),
                    ]
                    pair = ("m", "h", INT8, FLOAT)
                    for compared in ({}, *({pair: [row(one, 0.02)]} for one in (0.8, 1.0, 1.3))):
                        (found,) = quantizations(results, compared)
                        (advised,) = recommendations(results, compared)
                        case = (ratio, spread, verdict, rival, compared)
                        if advised["variant"] == INT8:
                            checked += 1
                            assert found["verdict"] != "do not quantize", case
                        if found["verdict"] == "quantize":
                            assert advised["variant"] != FLOAT, case
    assert checked > 20


def test_the_quotient_of_a_variant_with_itself_is_one() -> None:
    rows = {FLOAT: {**row(3.0, 0.0), "baseline": BASELINE}}
    assert quotient(FLOAT, FLOAT, rows)["ratio"] == 1
    assert quotient(FLOAT, INT8, rows) is None


def test_the_example_holds_what_its_results_come_to() -> None:
    summary = json.loads(EXAMPLE.read_text())
    assert summary["quantization"] == quantizations(summary["results"])
    assert len(summary["quantization"]) > 8
