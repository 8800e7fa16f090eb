"""Whether to quantize, from results and races built by hand: each engine against itself."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from raced import planted, race_record, race_shape
from tightrope.statistics import Interval
from tightrope.summary.quantize_or_not import quantizations
from tightrope.summary.races import race_entries, race_key, with_races
from tightrope.summary.recommend import recommendations
from tightrope.summary.result_types import ratio_entry
from tightrope.summary.results import variant_fields
from tightrope.variants import PRECISIONS, QUANTIZED, UNQUANTIZED, parse

EXAMPLE = Path(__file__).parents[2] / "data/summary.json"
SHAPE = {"batch": 1, "sequence": 64}
LARGE = {"batch": 16, "sequence": 64}
BASELINE = "cpu-pytorch-fp32"
FLOAT, INT8 = "cpu-onnxruntime-fp32", "cpu-onnxruntime-int8-minmax-64"
DYNAMIC, AUTO = "cpu-onnxruntime-int8-dynamic", "cpu-onnxruntime-int8-auto-minmax-64"
ENTROPY = "cpu-onnxruntime-int8-entropy-64"
DELTAS = {"kept": -0.002, "undecided": -0.012, "dropped": -0.05}
Ratios = dict[tuple[str, str], float]


def row(ratio: float | None, shape: dict[str, int] = SHAPE) -> dict[str, Any]:
    """A latency `ratio` times as fast as a baseline of 10 ms, within 2 % on the log scale."""
    speedup = ratio and ratio_entry(between(ratio, 0.02))
    known = {"disturbed": None, "provisional": False}
    return {**shape, "paired_s": 0.01 / (ratio or 1.0), "speedup": speedup, **known}


def between(ratio: float, spread: float) -> Interval:
    return Interval(*(ratio * math.exp(off) for off in (0, -spread, spread)))


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
        "samples_needed": None,
    }
    names = {"model": "m", "variant": variant, **variant_fields(parse(variant))}
    facts = {"baseline": BASELINE, "host": "h", "status": "ok", "reason": None}
    own = {"size_bytes": 100, "accuracy": accuracy, "latency": list(rows)}
    return {**names, **facts, **own, **changes}


def failed(variant: str, reason: str, **changes: Any) -> dict[str, Any]:
    lost = {"status": "failed", "reason": reason, "verdict": None}
    return result(variant, **{**lost, **changes})


def race(
    ratios: Ratios,
    *,
    spread: float = 0.02,
    shape: dict[str, int] = SHAPE,
    model: str = "m",
    host: str = "h",
    device: str = "cpu",
) -> dict[Any, dict[str, Any]]:
    """The race in which the first of each pair was so many times as fast as the other."""
    rows = [
        {"variant": one, "other": other, **ratio_entry(between(ratio, spread))}
        for (one, other), ratio in ratios.items()
    ]
    names = list(dict.fromkeys(name for pair in ratios for name in pair))
    return {race_key(model, host, device, shape): {"raced": names, "heats": 1, "ratios": rows}}


def entries(*results: dict[str, Any], races: Any = None, **changes: Any) -> list[dict[str, Any]]:
    return quantizations([result(BASELINE, row(None), **changes), *results], races or {})


def entry(
    *results: dict[str, Any], ratios: Ratios | None = None, spread: float = 0.02
) -> dict[str, Any]:
    """The only entry; `ratios` are those of the race."""
    (found,) = entries(*results, races=race(ratios or {}, spread=spread))
    return found


def two(ratio: float, verdict: str = "kept", spread: float = 0.02) -> dict[str, Any]:
    """The entry of INT8 `ratio` times as fast as FLOAT in the race."""
    results = result(FLOAT, row(1.5)), result(INT8, row(1.5 * ratio), verdict=verdict)
    return entry(*results, ratios={(INT8, FLOAT): ratio}, spread=spread)


def test_every_precision_is_either_quantized_or_not() -> None:
    assert sorted((*QUANTIZED, *UNQUANTIZED)) == sorted(PRECISIONS)


def test_surely_faster_with_the_answers_kept_is_worth_it() -> None:
    found = two(2.0)
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
    assert found["failed"] is None
    assert found["speedup"] == ratio_entry(between(2.0, 0.02))
    assert found["accuracy"] == {
        "delta": -0.002,
        "delta_low": -0.008,
        "delta_high": pytest.approx(0.004),
        "flips": 30,
        "samples": 1500,
        "verdict": "kept",
    }


def test_the_race_decides_whatever_their_speed_ups_over_the_baseline_say() -> None:
    """The machine was slower while the float variant was measured, and PyTorch most of all."""
    results = result(FLOAT, row(6.1)), result(INT8, row(5.2))
    found = entry(*results, ratios={(INT8, FLOAT): 1.15})
    assert found["verdict"] == "quantize"
    assert found["speedup"]["ratio"] == pytest.approx(1.15)


def test_two_speed_ups_over_the_baseline_make_no_speed_up_over_each_other() -> None:
    found = entry(result(FLOAT, row(2.0)), result(INT8, row(3.0)))
    assert (found["verdict"], found["speedup"]) == ("undecided", None)
    assert found["why"][0] == f"not raced with {FLOAT}: another quantized variant is faster"


def test_with_the_baseline_itself_the_paired_speed_up_is_enough() -> None:
    dynamic = "cpu-pytorch-int8-dynamic"
    (found,) = entries(result(dynamic, row(1.5)))
    assert (found["unquantized"], found["variant"]) == (BASELINE, dynamic)
    assert found["speedup"] == row(1.5)["speedup"]
    assert found["verdict"] == "quantize"


def test_a_race_with_the_baseline_itself_beats_the_paired_speed_up() -> None:
    dynamic = "cpu-pytorch-int8-dynamic"
    (found,) = entries(result(dynamic, row(1.5)), races=race({(dynamic, BASELINE): 0.9}))
    assert found["verdict"] == "do not quantize"


@pytest.mark.parametrize(
    "place", [{"model": "n"}, {"host": "k"}, {"device": "cuda"}, {"shape": LARGE}], ids=str
)
def test_a_race_of_another_model_place_or_shape_says_nothing(place: dict[str, Any]) -> None:
    races = race({(INT8, FLOAT): 3.0}, **place)
    (found,) = entries(result(FLOAT, row(2.0)), result(INT8, row(1.0)), races=races)
    assert found["speedup"] is None


@pytest.mark.parametrize(
    ("ratio", "spread", "word"), [(0.8, 0.02, "slower"), (1.0, 0.0, "no faster")]
)
def test_what_is_surely_not_faster_is_not_worth_it_though_the_answers_are_kept(
    ratio: float, spread: float, word: str
) -> None:
    found = two(ratio, spread=spread)
    assert found["verdict"] == "do not quantize"
    assert found["why"] == [f"{word} than {FLOAT}", "accuracy kept"]


def test_a_tie_is_undecided() -> None:
    found = two(1.01, spread=0.03)
    assert (found["verdict"], found["speedup"]["verdict"]) == ("undecided", "tie")
    assert found["why"] == [f"not significantly faster than {FLOAT}", "accuracy kept"]


def test_dropped_answers_are_not_worth_any_speed() -> None:
    found = two(4.0, "dropped")
    assert found["verdict"] == "do not quantize"
    assert found["why"] == [f"faster than {FLOAT}", "accuracy dropped"]


def test_a_speed_up_with_undecided_answers_is_undecided() -> None:
    found = two(4.0, "undecided")
    assert found["verdict"] == "undecided"
    assert found["why"] == [f"faster than {FLOAT}", "accuracy undecided: more samples can tell"]


def test_all_reasons_that_hold_are_given() -> None:
    assert two(0.8, "dropped")["why"] == [f"slower than {FLOAT}", "accuracy dropped"]
    slow = two(0.8, "undecided")
    assert slow["verdict"] == "do not quantize"
    assert slow["why"][0] == f"slower than {FLOAT}" and "undecided" in slow["why"][1]


def test_what_was_disturbed_is_undecided_and_says_so() -> None:
    lost = row(None) | {"disturbed": "other load", "paired_s": None}
    found = entry(result(FLOAT, row(1.5)), result(INT8, lost))
    assert (found["verdict"], found["speedup"]) == ("undecided", None)
    assert found["why"] == ["disturbed by other load", "accuracy kept"]


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
    found = entry(
        result(FLOAT, row(1.5)),
        failed(DYNAMIC, "killed"),
        result(INT8, row(3.0)),
        ratios={(INT8, FLOAT): 2.0},
    )
    assert (found["verdict"], found["variant"]) == ("quantize", INT8)
    assert [one["variant"] for one in found["others"]] == [DYNAMIC]


def test_the_variant_is_the_fastest_of_those_with_the_best_verdict() -> None:
    found = entry(
        result(FLOAT, row(1.0)),
        result(INT8, row(5.0), verdict="dropped"),
        result(ENTROPY, row(4.0), verdict="undecided"),
        result(DYNAMIC, row(2.0)),
        result(AUTO, row(3.0)),
        ratios={(AUTO, FLOAT): 3.0, (DYNAMIC, FLOAT): 2.0},
    )
    assert (found["variant"], found["verdict"]) == (AUTO, "quantize")
    assert [(one["variant"], one["verdict"]) for one in found["others"]] == [
        (DYNAMIC, "quantize"),
        (ENTROPY, "undecided"),
        (INT8, "do not quantize"),
    ]


def test_a_slow_variant_does_not_condemn_an_engine_that_has_an_undecided_one() -> None:
    found = entry(
        result(FLOAT, row(2.0)),
        result(AUTO, row(1.0)),
        result(INT8, row(4.0), verdict="undecided"),
        ratios={(AUTO, FLOAT): 0.5, (INT8, FLOAT): 2.0},
    )
    assert (found["variant"], found["verdict"]) == (INT8, "undecided")


def test_one_that_did_not_race_does_not_speak_for_the_engine() -> None:
    """It was behind another quantized one, which is slower than in float."""
    found = entry(
        *(result(FLOAT, row(2.0)), result(INT8, row(1.5)), result(DYNAMIC, row(1.2))),
        ratios={(INT8, FLOAT): 0.75},
    )
    assert (found["variant"], found["verdict"]) == (INT8, "do not quantize")
    (other,) = found["others"]
    assert (other["variant"], other["verdict"]) == (DYNAMIC, "undecided")


def test_one_whose_time_was_disturbed_may_be_better_than_the_one_that_raced() -> None:
    lost = row(None) | {"disturbed": "other load", "paired_s": None}
    found = entry(
        *(result(FLOAT, row(2.0)), result(INT8, row(1.5)), result(DYNAMIC, lost)),
        ratios={(INT8, FLOAT): 0.75},
    )
    assert (found["variant"], found["verdict"]) == (DYNAMIC, "undecided")


def test_it_is_put_against_the_float_variant_that_raced() -> None:
    bf16, fp32, int8 = (f"cpu-openvino-{one}" for one in ("bf16", "fp32", "int8-nncf-64"))
    results = [result(bf16, row(4.0)), result(fp32, row(1.5)), result(int8, row(3.0))]
    found = entry(*results, ratios={(int8, fp32): 2.0})
    assert (found["unquantized"], found["verdict"]) == (fp32, "quantize")
    found = entry(*results, ratios={(int8, bf16): 0.75})
    assert (found["unquantized"], found["verdict"]) == (bf16, "do not quantize")


def test_of_float_variants_that_all_raced_the_fastest_is_the_rival() -> None:
    bf16, fp32, int8 = (f"cpu-openvino-{one}" for one in ("bf16", "fp32", "int8-nncf-64"))
    found = entry(
        *(result(bf16, row(4.0)), result(fp32, row(1.5)), result(int8, row(3.0))),
        ratios={(int8, fp32): 2.0, (int8, bf16): 0.75},
    )
    assert found["unquantized"] == bf16


def test_a_float_variant_whose_answers_dropped_is_no_rival() -> None:
    found = entry(
        result("cpu-openvino-fp32", row(1.5)),
        result("cpu-openvino-bf16", row(4.0), verdict="dropped"),
        result("cpu-openvino-int8-nncf-64", row(3.0)),
        ratios={("cpu-openvino-int8-nncf-64", "cpu-openvino-fp32"): 2.0},
    )
    assert (found["unquantized"], found["verdict"]) == ("cpu-openvino-fp32", "quantize")


def test_being_slower_than_what_may_be_no_choice_decides_nothing() -> None:
    bf16, int8 = "cpu-openvino-bf16", "cpu-openvino-int8-nncf-64"
    own, ratios = result(bf16, row(4.0), verdict="undecided"), {(int8, bf16): 0.75}
    found = entry(own, result(int8, row(3.0)), ratios=ratios)
    assert (found["verdict"], found["unquantized"]) == ("undecided", bf16)
    assert found["why"][-1] == f"the accuracy of {bf16} itself is undecided"
    alike = entry(own, result(int8, row(3.0), verdict="undecided"), ratios=ratios)
    assert alike["verdict"] == "do not quantize"


def test_without_labels_speed_alone_decides_and_it_says_so() -> None:
    told = "accuracy was not evaluated: speed alone decides"
    for ratio, verdict in ((2.0, "quantize"), (1.0, "undecided"), (0.5, "do not quantize")):
        (found,) = entries(
            result(FLOAT, row(1.0), verdict=None),
            result(INT8, row(ratio), verdict=None),
            races=race({(INT8, FLOAT): ratio}),
            verdict=None,
        )
        assert (found["verdict"], found["accuracy"]) == (verdict, None)
        assert found["why"][-1] == told


def test_each_shape_has_a_verdict_of_its_own() -> None:
    races = race({(INT8, FLOAT): 2.0}) | race({(INT8, FLOAT): 0.5}, shape=LARGE)
    short, long = entries(
        result(FLOAT, row(1.0), row(2.0, shape=LARGE)),
        result(INT8, row(2.0), row(1.0, shape=LARGE)),
        races=races,
    )
    assert (short["shape"], short["verdict"]) == (SHAPE, "quantize")
    assert (long["shape"], long["verdict"]) == (LARGE, "do not quantize")


def test_images_have_shapes_too() -> None:
    shape = {"batch": 1, "height": 224, "width": 224}
    results = [result(FLOAT, row(2.0, shape=shape)), result(INT8, row(1.0, shape=shape))]
    (found,) = quantizations(results, race({(INT8, FLOAT): 0.5}, shape=shape))
    assert (found["shape"], found["verdict"]) == (shape, "do not quantize")


def test_a_shape_at_which_only_the_float_variant_was_measured_is_undecided() -> None:
    _, other = entries(result(FLOAT, row(1.0), row(1.0, shape=LARGE)), result(INT8, row(2.0)))
    assert (other["shape"], other["verdict"]) == (LARGE, "undecided")
    assert other["why"] == ["not measured at this shape", "accuracy kept"]


def test_without_a_race_speed_cannot_be_told_but_dropped_answers_can() -> None:
    lost = failed(BASELINE, "killed")
    alone = [{**row(ratio), "speedup": None} for ratio in (1.0, 2.0)]
    float_one = result(FLOAT, alone[0])
    (found,) = quantizations([lost, float_one, result(INT8, alone[1])], {})
    assert (found["verdict"], found["speedup"]) == ("undecided", None)
    (found,) = quantizations([lost, float_one, result(INT8, alone[1], verdict="dropped")], {})
    assert found["verdict"] == "do not quantize"


def test_an_accuracy_that_could_not_be_compared_is_undecided() -> None:
    lacking = result(INT8, row(2.0), verdict="undecided")
    unknown = ("delta", "delta_low", "delta_high", "flips")
    lacking["accuracy"] |= dict.fromkeys(unknown)
    found = entry(result(FLOAT, row(1.0)), lacking, ratios={(INT8, FLOAT): 2.0})
    assert found["verdict"] == "undecided"
    assert found["why"][1] == "accuracy undecided: its baseline has no predictions"


def test_hosts_and_devices_are_never_mixed() -> None:
    far = {"baseline": "cuda-pytorch-fp32", "host": "k"}
    fp16, fp8 = "cuda-tensorrt-fp16", "cuda-tensorrt-fp8-minmax-64"
    races = race({(INT8, FLOAT): 2.0}) | race({(INT8, FLOAT): 0.5}, host="k")
    races |= race({(fp8, fp16): 1.5}, host="k", device="cuda")
    found = entries(
        result(FLOAT, row(1.0)),
        result(INT8, row(2.0)),
        result(BASELINE, row(None), host="k"),
        result(FLOAT, row(2.0), host="k"),
        result(INT8, row(1.0), host="k"),
        result("cuda-pytorch-fp32", row(None), **far),
        result(fp16, row(9.0), **far),
        result(fp8, row(14.0), **far),
        result("cuda-tensorrt-int8-fp16-minmax-64", row(12.0), **far),
        races=races,
    )
    assert [(one["host"], one["device"], one["engine"], one["verdict"]) for one in found] == [
        ("h", "cpu", "onnxruntime", "quantize"),
        ("k", "cpu", "onnxruntime", "do not quantize"),
        ("k", "cuda", "tensorrt", "quantize"),
    ]
    assert (found[2]["variant"], found[2]["unquantized"]) == (fp8, fp16)


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


def test_models_are_apart() -> None:
    found = entries(
        result(FLOAT, row(1.0)),
        result(INT8, row(2.0), model="n"),
        result(FLOAT, row(1.0), model="n"),
    )
    assert [one["model"] for one in found] == ["n"]


def test_what_is_recommended_is_never_called_not_worth_quantizing() -> None:
    """Over many races and verdicts of one engine's float and quantized variant."""
    checked = 0
    for ratio in (0.7, 0.95, 1.0, 1.05, 1.5):
        for spread in (0.002, 0.05):
            for verdict in DELTAS:
                for rival in DELTAS:
                    found, advised = both(ratio, spread, verdict, rival)
                    case = (ratio, spread, verdict, rival)
                    if advised["variant"] == INT8:
                        checked += 1
                        assert found["verdict"] != "do not quantize", case
                    if found["verdict"] == "quantize":
                        assert advised["variant"] != FLOAT, case
    assert checked > 5


def both(
    ratio: float, spread: float, verdict: str, rival: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Whether to quantize and what to deploy, by one race of the two."""
    timed = {"p50_s": 0.005, "mean_s": 0.005}
    results = [
        result(BASELINE, row(None) | {"p50_s": 0.01, "mean_s": 0.01}),
        result(FLOAT, row(2.0) | timed, verdict=rival, size_bytes=400),
        result(INT8, row(2.0) | timed, verdict=verdict),
    ]
    kept = {FLOAT: rival, INT8: verdict}
    shape = race_shape(
        planted({FLOAT: 0.005, INT8: 0.005 / ratio}, 40, spread=spread),
        contenders=[name for name in (FLOAT, INT8) if kept[name] == "kept"],
        pairs=[(INT8, FLOAT)],
    )
    sizes = {("m", FLOAT): 400, ("m", INT8): 100}
    (entry,) = race_entries([race_record([shape])], sizes, accept_disturbed=False).values()
    races = {race_key("m", "h", "cpu", SHAPE): entry}
    results = with_races(results, races)
    (found,) = quantizations(results, races)
    (advised,) = recommendations(results, races)
    return found, advised


def test_the_example_holds_what_its_results_and_races_come_to() -> None:
    summary = json.loads(EXAMPLE.read_text())
    races = {
        race_key(one["model"], one["host"], one["device"], one["shape"]): one
        for one in summary["races"]
    }
    assert summary["quantization"] == quantizations(summary["results"], races)
    assert len(summary["quantization"]) > 8


@pytest.mark.parametrize(
    ("heats", "reason"),
    [
        (2, f"not raced with {FLOAT}: the finalists did not fit in memory together"),
        (1, f"too few undisturbed rounds paired with {FLOAT}"),
    ],
)
def test_a_pair_that_raced_but_never_met_says_why(heats: int, reason: str) -> None:
    known = race({(INT8, "cpu-openvino-fp32"): 2.0, (FLOAT, "cpu-openvino-fp32"): 1.5})
    for one in known.values():
        one["heats"] = heats
    (found,) = entries(result(FLOAT, row(1.5)), result(INT8, row(3.0)), races=known)
    assert (found["verdict"], found["speedup"]) == ("undecided", None)
    assert found["why"][0] == reason
