"""Whether to quantize, from results and races built by hand: each engine against itself."""

from typing import Any

import pytest
from msgspec.structs import asdict, replace
from raced import PLACE, SHAPE, race_record, race_shape
from results import BASELINE, between, failed, lost, result, row
from tightrope.decide.phrases import said
from tightrope.decide.quantize import Quantization, QuantizedVariant, quantizations
from tightrope.decide.race import RaceKey, RaceRatio, race_entries
from tightrope.decide.result import Accuracy, LatencyRow, Ratio, Result, Shape
from tightrope.variants import PRECISIONS, QUANTIZED, UNQUANTIZED

LARGE = Shape(batch=16, sequence=64)
FLOAT, INT8 = "cpu-onnxruntime-fp32", "cpu-onnxruntime-int8-minmax-64"
DYNAMIC, AUTO = "cpu-onnxruntime-int8-dynamic", "cpu-onnxruntime-int8-auto-minmax-64"
ENTROPY = "cpu-onnxruntime-int8-entropy-64"
UNKNOWN = Accuracy(0.9, 0.88, 0.92, 1500, verdict="undecided")
ALONE = race_record([race_shape({FLOAT: []})])
(WON,) = race_entries([ALONE], {("m", FLOAT): 1}, accept_disturbed=False).values()


def race(ratios, *, spread=0.02, shape=SHAPE, host=PLACE, device="cpu"):
    """The race in which the first of each pair was so many times as fast as the other."""
    rows = [
        RaceRatio(variant=one, other=other, **asdict(Ratio.of(between(ratio, spread))))
        for (one, other), ratio in ratios.items()
    ]
    names = list(dict.fromkeys(name for pair in ratios for name in pair))
    return {RaceKey("m", host, device, shape): replace(WON, raced=names, ratios=rows)}


def entries(*results: Result, races: Any = None, **changes: Any) -> list[Quantization]:
    return quantizations([result(BASELINE, row(None), **changes), *results], races or {})


def entry(*results: Result, ratios: Any = None, spread: float = 0.02) -> Quantization:
    """The only entry; `ratios` are those of the race."""
    (found,) = entries(*results, races=race(ratios or {}, spread=spread))
    return found


def words(found: QuantizedVariant) -> list[str]:
    return [*map(said, found.why)]


def two(ratio: float, verdict: Any = "kept", spread: float = 0.02) -> Quantization:
    """The entry of INT8 `ratio` times as fast as FLOAT in the race."""
    results = result(FLOAT, row(1.5)), result(INT8, row(1.5 * ratio), verdict=verdict)
    return entry(*results, ratios={(INT8, FLOAT): ratio}, spread=spread)


def test_every_precision_is_either_quantized_or_not() -> None:
    assert sorted((*QUANTIZED, *UNQUANTIZED)) == sorted(PRECISIONS)


UNDECIDED = "accuracy undecided: more samples can tell"


@pytest.mark.parametrize(
    ("ratio", "spread", "accuracy", "verdict", "why"),
    [
        (2.0, 0.02, "kept", "quantize", ["faster than", "accuracy kept"]),
        (0.8, 0.02, "kept", "do not quantize", ["slower than", "accuracy kept"]),
        (1.0, 0.0, "kept", "do not quantize", ["no faster than", "accuracy kept"]),
        (1.01, 0.03, "kept", "undecided", ["not significantly faster than", "accuracy kept"]),
        (4.0, 0.02, "dropped", "do not quantize", ["faster than", "accuracy dropped"]),
        (4.0, 0.02, "undecided", "undecided", ["faster than", UNDECIDED]),
        (0.8, 0.02, "dropped", "do not quantize", ["slower than", "accuracy dropped"]),
        (0.8, 0.02, "undecided", "do not quantize", ["slower than", UNDECIDED]),
    ],
)
def test_speed_and_accuracy_decide_and_all_reasons_that_hold_are_given(
    ratio: float, spread: float, accuracy: str, verdict: str, why: list[str]
) -> None:
    found = two(ratio, accuracy, spread)
    assert (found.verdict, words(found)) == (verdict, [f"{why[0]} {FLOAT}", why[1]])


LOST = lost()
EAGER_INT8 = "cpu-pytorch-int8-dynamic"
OV_BF16, OV_FP32, OV_INT8 = (f"cpu-openvino-{one}" for one in ("bf16", "fp32", "int8-nncf-64"))
OPENVINO = (result(OV_BF16, row(4.0)), result(OV_FP32, row(1.5)), result(OV_INT8, row(3.0)))
UNSURE = result(OV_BF16, row(4.0), verdict="undecided")


def ort(float_ratio: float, **ratios: Any) -> tuple[Result, ...]:
    """Variants of onnxruntime: rows, or by how much they are faster, perhaps with a verdict."""
    names = {"int8": INT8, "dynamic": DYNAMIC, "auto": AUTO, "entropy": ENTROPY}
    made = [result(FLOAT, row(float_ratio))]
    for name, one in ratios.items():
        ratio, *verdict = one if isinstance(one, tuple) else (one,)
        own = ratio if isinstance(ratio, LatencyRow) else row(ratio)
        made.append(result(names[name], own, **({"verdict": verdict[0]} if verdict else {})))
    return tuple(made)


NOT_RACED = f"not raced with {FLOAT}: another quantized variant is faster"
UNPREDICTED = result(INT8, row(2.0), verdict="undecided", accuracy=UNKNOWN)


@pytest.mark.parametrize(
    ("results", "ratios", "expected", "why"),
    [
        # the race decides whatever speed-ups over the baseline, measured in other minutes, say
        (ort(6.1, int8=5.2), {(INT8, FLOAT): 1.15}, "quantize", ""),
        (ort(2.0, int8=3.0), {}, "undecided", NOT_RACED),
        # over the baseline itself the paired speed-up is enough, and a race better
        ([result(EAGER_INT8, row(1.5))], {}, "quantize", ""),
        ([result(EAGER_INT8, row(1.5))], {(EAGER_INT8, BASELINE): 0.9}, "do not quantize", ""),
        (ort(1.5, int8=LOST), {}, "undecided", "disturbed by other load"),
        # the variant is the fastest of those with the best verdict
        (
            (*ort(1.5, int8=3.0), failed(DYNAMIC, "killed")),
            {(INT8, FLOAT): 2.0},
            *(f"quantize {INT8} {FLOAT} {DYNAMIC}", ""),
        ),
        (
            ort(1.0, int8=(5.0, "dropped"), entropy=(4.0, "undecided"), dynamic=2.0, auto=3.0),
            {(AUTO, FLOAT): 3.0, (DYNAMIC, FLOAT): 2.0},
            *(f"quantize {AUTO} {FLOAT} {DYNAMIC} {ENTROPY} {INT8}", ""),
        ),
        # a slow variant does not condemn an engine that has an undecided one
        (
            ort(2.0, auto=1.0, int8=(4.0, "undecided")),
            {(AUTO, FLOAT): 0.5, (INT8, FLOAT): 2.0},
            *(f"undecided {INT8}", ""),
        ),
        # one behind a quantized variant that is slower than float did not race
        (
            ort(2.0, int8=1.5, dynamic=1.2),
            {(INT8, FLOAT): 0.75},
            *(f"do not quantize {INT8} {FLOAT} {DYNAMIC}", ""),
        ),
        # one whose time was disturbed may be better than the one that raced
        (ort(2.0, int8=1.5, dynamic=LOST), {(INT8, FLOAT): 0.75}, f"undecided {DYNAMIC}", ""),
        # the rival is the float variant that raced, of several the fastest
        (OPENVINO, {(OV_INT8, OV_FP32): 2.0}, f"quantize {OV_INT8} {OV_FP32}", ""),
        (
            OPENVINO,
            {(OV_INT8, OV_FP32): 2.0, (OV_INT8, OV_BF16): 0.75},
            *(f"do not quantize {OV_INT8} {OV_BF16}", ""),
        ),
        # one whose accuracy dropped is no rival, and one that is undecided decides nothing
        (
            (result(OV_BF16, row(4.0), verdict="dropped"), *OPENVINO[1:]),
            {(OV_INT8, OV_FP32): 2.0},
            *(f"quantize {OV_INT8} {OV_FP32}", ""),
        ),
        (
            (UNSURE, OPENVINO[2]),
            {(OV_INT8, OV_BF16): 0.75},
            *(f"undecided {OV_INT8} {OV_BF16}", f"the accuracy of {OV_BF16} itself is undecided"),
        ),
        (
            (UNSURE, result(OV_INT8, row(3.0), verdict="undecided")),
            {(OV_INT8, OV_BF16): 0.75},
            *("do not quantize", ""),
        ),
        (
            (*ort(1.0), UNPREDICTED),
            {(INT8, FLOAT): 2.0},
            *("undecided", "accuracy undecided: its baseline has no predictions"),
        ),
    ],
)
def test_an_engine_has_one_verdict(results, ratios, expected, why):
    found = entry(*results, ratios=ratios)
    others = [one.variant for one in found.others]
    told = " ".join([found.verdict, found.variant, found.unquantized, *others])
    assert told.startswith(expected)
    assert not why or why in words(found)


def test_where_all_failed_their_reasons_are_told() -> None:
    collapsed = failed(INT8, "collapsed: chance", verdict="dropped")
    found = entry(*ort(1.5), collapsed, failed(DYNAMIC, "killed: out of memory"))
    assert (found.verdict, found.variant) == ("do not quantize", DYNAMIC)
    assert words(found) == ["failed: killed: out of memory"]
    assert (found.failed, found.speedup) == ("killed: out of memory", None)
    (other,) = found.others
    assert (other.variant, other.verdict) == (INT8, "do not quantize")
    assert words(other) == ["failed: collapsed: chance", "accuracy dropped"]


def test_without_labels_speed_alone_decides_and_it_says_so() -> None:
    for ratio, verdict in ((2.0, "quantize"), (1.0, "undecided"), (0.5, "do not quantize")):
        results = result(FLOAT, row(1.0), verdict=None), result(INT8, row(ratio), verdict=None)
        (found,) = entries(*results, races=race({(INT8, FLOAT): ratio}), verdict=None)
        assert (found.verdict, found.accuracy) == (verdict, None)
        assert words(found)[-1] == "accuracy was not evaluated: speed alone decides"


def test_each_shape_has_a_verdict_of_its_own() -> None:
    image = Shape(batch=1, height=224, width=224)
    races = race({(INT8, FLOAT): 2.0}) | race({(INT8, FLOAT): 0.5}, shape=image)
    short, long, other = entries(
        result(FLOAT, row(1.0), row(2.0, shape=image), row(1.0, shape=LARGE)),
        result(INT8, row(2.0), row(1.0, shape=image)),
        races=races,
    )
    assert (short.shape, short.verdict) == (SHAPE, "quantize")
    assert (long.shape, long.verdict) == (image, "do not quantize")
    assert (other.shape, other.verdict) == (LARGE, "undecided")
    assert words(other) == ["not measured at this shape", "accuracy kept"]


def test_without_a_race_speed_cannot_be_told_but_dropped_answers_can() -> None:
    alone = [row(ratio, speedup=None) for ratio in (1.0, 2.0)]
    results = [failed(BASELINE, "killed"), result(FLOAT, alone[0])]
    for accuracy, verdict in (("kept", "undecided"), ("dropped", "do not quantize")):
        (found,) = quantizations([*results, result(INT8, alone[1], verdict=accuracy)], {})
        assert (found.verdict, found.speedup) == (verdict, None)


def test_models_hosts_and_devices_are_never_mixed() -> None:
    far = {"baseline": "cuda-pytorch-fp32", "host": "k"}
    fp16, fp8 = "cuda-tensorrt-fp16", "cuda-tensorrt-fp8-minmax-64"
    races = race({(INT8, FLOAT): 2.0}) | race({(INT8, FLOAT): 0.5}, host="k")
    races |= race({(fp8, fp16): 1.5}, host="k", device="cuda")
    other = [(BASELINE, None), (FLOAT, 2.0), (INT8, 1.0)]
    cards = [("cuda-pytorch-fp32", None), (fp16, 9.0), (fp8, 14.0)]
    cards.append(("cuda-tensorrt-int8-fp16-minmax-64", 12.0))
    found = entries(
        *ort(1.0, int8=2.0),
        *(result(name, row(ratio), host="k") for name, ratio in other),
        *(result(name, row(ratio), **far) for name, ratio in cards),
        # of another model the quantized one alone
        *(result(OV_FP32, row(1.0)), result(OV_INT8, row(2.0), model="n")),
        races=races,
    )
    assert [(one.host, one.device, one.engine, one.verdict) for one in found] == [
        (PLACE, "cpu", "onnxruntime", "quantize"),
        ("k", "cpu", "onnxruntime", "do not quantize"),
        ("k", "cuda", "tensorrt", "quantize"),
    ]
    assert (found[2].variant, found[2].unquantized) == (fp8, fp16)


def test_an_engine_without_both_kinds_has_no_entry() -> None:
    missing = {"host": None, "baseline": None, "status": "unavailable", "reason": "no nncf"}
    found = entries(
        *(result(FLOAT, row(2.0)), result(OV_INT8, row(3.0))),
        *(failed("cpu-inductor-fp32", "no compiler"), result(DYNAMIC, verdict=None, **missing)),
        result("cpu-inductor-int8-minmax-64", row(3.0)),
    )
    assert found == []


def test_a_pair_that_raced_but_never_met_says_why() -> None:
    ((place, one),) = race({(INT8, OV_FP32): 2.0, (FLOAT, OV_FP32): 1.5}).items()
    for heats, reason in (
        (2, f"not raced with {FLOAT}: the finalists did not fit in memory together"),
        (1, f"too few undisturbed rounds paired with {FLOAT}"),
    ):
        (found,) = entries(*ort(1.5, int8=3.0), races={place: replace(one, heats=heats)})
        assert (found.verdict, found.speedup) == ("undecided", None)
        assert words(found)[0] == reason
