"""What to deploy, from results and races built by hand."""

from typing import Any

import pytest
import results
from goals import reasons
from msgspec.structs import replace
from raced import PLACE, SHAPE, decided_shape, planted, race_record, race_shape
from results import BASELINE, WHY, failed, lost, row
from tightrope.decide.phrases import said
from tightrope.decide.race import race_entries, with_races
from tightrope.decide.recommend import Recommendation, recommendations, why_nothing
from tightrope.decide.result import Accuracy, Result, Shape
from tightrope.summary.results import not_planned_entry

LARGE = Shape(batch=16, sequence=128)
BF16, FLOAT, DYNAMIC = "cpu-pytorch-bf16", "cpu-openvino-fp32", "cpu-onnxruntime-int8-dynamic"
MINMAX, NNCF = "cpu-onnxruntime-int8-minmax-64", "cpu-openvino-int8-nncf-64"


def result(variant: str, ratio: float | None = None, *rows: Any, **changes: Any) -> Result:
    return results.result(variant, *(rows or [row(ratio)]), **changes)


def unavailable(variant: str) -> Result:
    """A result without a job: no host, no baseline, nothing measured."""
    return not_planned_entry("m", variant, "no NVIDIA GPU", "unavailable")


def races(results: Any, *shapes: Any, accept_disturbed: bool = False, **record: Any) -> Any:
    sizes = {(one.model, one.variant): one.size_bytes for one in results}
    found = race_record(list(shapes), **record)
    return race_entries([found], sizes, accept_disturbed=accept_disturbed)


def recommended(*results: Result, race: Any = None, **options: Any) -> Recommendation:
    decided = races(list(results), race, **options) if race else {}
    measured = [one for one in results if one.latency]
    others = [one for one in results if not one.latency]
    (found,) = recommendations(with_races(measured, decided) + others, decided)
    return found


def raced(rounds: int = 40, spread: float = 0.005, **milliseconds: Any) -> Any:
    """The race of these, by their milliseconds a call, at its first look."""
    names = {"base": BASELINE, "bf16": BF16, "plain": FLOAT, "dynamic": DYNAMIC, "nncf": NNCF}
    seconds = {
        name: 0.001 * milliseconds.pop(word) for word, name in names.items() if word in milliseconds
    }
    return decided_shape(seconds, rounds, spread=spread, **milliseconds)


def test_the_winner_of_the_race_is_recommended_and_every_other_has_its_reason() -> None:
    """Each speed-up is of minutes of its own; the race is of the same ones."""
    others = [
        *(result(BASELINE), result(BF16, 3.0), result(FLOAT, 3.1), result(DYNAMIC, 2.0)),
        result(MINMAX, 4.0, verdict="dropped"),
        result(NNCF, 5.0, verdict="undecided"),
        failed("cpu-onnxruntime-fp32", "too slow"),
        unavailable("cuda-pytorch-fp32"),
        result("cpu-compile-bf16", None, lost()),
    ]
    found = recommended(*others, race=raced(bf16=3.0, plain=4.0))
    assert (
        said(found.why) == "the fastest of the 4 with a time, of 5 variants that keep the accuracy"
    )
    alone = recommended(result(BF16, 3.0), result(FLOAT, None, lost()), race=race_shape({BF16: []}))
    only = "the only one with a time, of 2 variants that keep the accuracy"
    assert said(alone.why) == only
    assert (found.model, found.host, found.shape) == ("m", PLACE, SHAPE)
    assert (found.equal, found.open) == ([], [])
    dropped = "\N{MINUS SIGN}5.0 points (\N{MINUS SIGN}5.6 to \N{MINUS SIGN}4.4)"
    undecided = "\N{MINUS SIGN}1.2 points (\N{MINUS SIGN}1.8 to \N{MINUS SIGN}0.6)"
    assert found.variant == BF16
    why = reasons(found)
    assert why.pop(FLOAT).startswith(f"slower: 0.75 times as fast as {BF16} (0.7")
    assert why == {
        BASELINE: "slower: 10 ms per call",
        DYNAMIC: "slower: 2.00 times the baseline (1.96 to 2.04)",
        MINMAX: f"accuracy dropped: {dropped}",
        NNCF: f"accuracy undecided: {undecided}",
        "cpu-onnxruntime-fp32": "failed: too slow",
        "cuda-pytorch-fp32": "unavailable: no NVIDIA GPU",
        "cpu-compile-bf16": f"disturbed: {WHY}",
    }


CLOSE = {"rounds": 24, "spread": 0.05, "bf16": 3.0}
BOTH, BY_NAME = [BF16, FLOAT], "files of equal size, the first by name"


@pytest.mark.parametrize(
    ("sizes", "race", "variant", "why", "reason"),
    [
        (
            (400, 200),
            {"bf16": 3.0, "plain": 3.01},
            *(FLOAT, f"as fast as {BF16} (within 2 %); the smallest files"),
            "equally fast (within 2 %); not smaller",
        ),
        # smaller files do not make up for one that is slower by more
        (
            (400, 200),
            {**CLOSE, "plain": 3.1, "stop": "time limit"},
            *(BF16, f"the fastest by estimate; time did not suffice to tell it from {FLOAT}"),
            "not told apart: 0.",
        ),
        (
            (100, 100),
            {**CLOSE, "plain": 3.1, "stop": "none faster"},
            *(BF16, f"the fastest by estimate; not told apart from {FLOAT}, at most 2 % faster"),
            "not told apart: 0.",
        ),
        (
            (400, 400),
            {**CLOSE, "plain": 3.04, "stop": "none faster"},
            *(FLOAT, f"by estimate at most 2 % slower than {BF16}, not told apart; {BY_NAME}"),
            "not told apart",
        ),
    ],
)
def test_of_close_ones_it_says_how_it_was_chosen(sizes, race, variant, why, reason):
    close = [result(one, 3.0, size_bytes=size) for one, size in zip(BOTH, sizes, strict=True)]
    found = recommended(result(BASELINE), *close, race=raced(**race))
    (other,) = set(BOTH) - {variant}
    assert (found.variant, said(found.why), found.provisional) == (variant, why, False)
    assert found.equal + found.open == [other]
    assert bool(found.equal) == ("equally" in reason)
    assert reasons(found)[other].startswith(reason)


def test_one_that_was_out_before_it_met_the_winner_names_who_beat_it() -> None:
    times = planted({BF16: 0.003, FLOAT: 0.004, DYNAMIC: 0.005}, 40)
    times[DYNAMIC][6:] = [None] * 34
    times[BF16][:6] = [None] * 6
    race = race_shape(times, out={DYNAMIC: {"round": 6, "by": FLOAT}})
    found = recommended(*KEPT, result(DYNAMIC, 3.0), race=race)
    assert reasons(found)[DYNAMIC] == f"slower than {FLOAT} in the race"


KEPT = [result(BASELINE), result(BF16, 3.0), result(FLOAT, 3.0)]
UNLABELLED = [result(BASELINE, verdict=None), result(BF16, 3.0, verdict=None)]
DROPPED = result(FLOAT, 5.0, verdict="dropped")
ACCEPTED = row(3.0, disturbed=WHY, provisional=True)
DISTURBED = {"rounds": 24, "bf16": 3.0, "plain": 4.0, "disturbed": 20}


@pytest.mark.parametrize(
    ("results", "race", "variant", "why", "provisional"),
    [
        (
            [result(BASELINE), result(BF16, 0.98)],
            raced(base=3.0, bf16=4.0),
            *(BASELINE, "the fastest of the 2 variants that keep the accuracy", False),
        ),
        (
            [failed(BASELINE, "killed"), result(BF16, 3.0), DROPPED],
            race_shape({BF16: []}),
            *(BF16, "the only variant that keeps the accuracy", False),
        ),
        (UNLABELLED, raced(bf16=3.0), BF16, "the fastest of the 2 variants measured", False),
        (UNLABELLED[1:], raced(bf16=3.0), BF16, "the only variant measured", False),
        ([failed(BASELINE, ""), DROPPED], None, None, "no variant keeps the accuracy", False),
        ([result(BASELINE), result(BF16, 3.0)], None, None, "the race was not run", False),
        (
            [result(BASELINE, None, lost()), result(BF16, None, lost())],
            *(None, None),
            "disturbed: other load kept the processors busy while the variants were timed",
            True,
        ),
        (KEPT, raced(**DISTURBED), None, "disturbed: other load disturbed the race: 4 of 24", True),
        # accepted
        (
            [result(BASELINE), result(BF16, None, ACCEPTED), result(FLOAT, 2.0)],
            raced(bf16=3.0),
            *(BF16, "", True),
        ),
    ],
)
def test_the_choice_and_its_reason(results, race, variant, why, provisional):
    found = recommended(*results, race=race)
    assert (found.variant, found.provisional) == (variant, provisional)
    assert said(found.why).startswith(why)
    assert set(reasons(found)) == {one.variant for one in results} - {variant}


def test_a_disturbed_variant_is_never_recommended_and_makes_the_choice_provisional() -> None:
    # what does not keep the accuracy cannot change the choice
    for verdict, told in (("kept", [FLOAT]), ("dropped", []), ("undecided", [])):
        one = result(FLOAT, None, lost(), verdict=verdict)
        found = recommended(*KEPT[:2], one, race=raced(bf16=3.0))
        expected = BF16, bool(told), told
        assert (found.variant, found.provisional, found.disturbed) == expected
    # accepted, a disturbed race recommends
    found = recommended(*KEPT, race=raced(**DISTURBED), accept_disturbed=True)
    assert (found.variant, found.provisional) == (BF16, True)
    # on a GPU other things disturb too
    words = said(why_nothing([], [], [], ["cuda-pytorch-fp16"]))
    assert "kept the processors busy, or the GPU was throttled or shared," in words
    # a baseline disturbed alone leaves the choice sure where the chosen beats it
    for ratio, verdict, provisional in ((3.0, "faster", False), (1.0, "tie", True)):
        chosen = result(BF16, ratio)
        chosen.latency[0].speedup.verdict = verdict
        found = recommended(result(BASELINE, None, lost()), chosen, race=raced(bf16=3.0))
        assert found.variant == BF16
        assert (found.provisional, bool(found.disturbed)) == (provisional, provisional)


def test_what_died_or_had_no_winner_in_the_race_says_so() -> None:
    found = recommended(*KEPT, race=raced(**DISTURBED))
    assert set(reasons(found).values()) == {"the race has no winner"}
    race = replace(raced(bf16=4.0, plain=3.0), out={})
    found = recommended(*KEPT, race=race, left_out={FLOAT: "killed by SIGKILL"})
    assert found.variant == BF16
    assert reasons(found)[FLOAT] == "failed in the race: killed by SIGKILL"


def test_accuracy_that_could_not_be_compared_is_no_reason_to_deploy() -> None:
    unknown = Accuracy(0.9, 0.88, 0.92, 1500, verdict="undecided")
    found = recommended(result(BASELINE), result(BF16, 3.0, accuracy=unknown), race=raced(base=9.0))
    assert found.variant == BASELINE
    assert reasons(found) == {BF16: "accuracy undecided: its baseline has no predictions"}


def test_each_shape_has_its_recommendation_from_its_own_race() -> None:
    results = [result(name, None, row(3.0), row(3.0, LARGE)) for name in (BF16, FLOAT)]
    large = replace(raced(bf16=4.0, plain=3.0), **LARGE.sizes)
    decided = races(results, raced(bf16=3.0, plain=4.0), large)
    found = recommendations(with_races(results, decided), decided)
    assert [(one.shape, one.variant) for one in found] == [(SHAPE, BF16), (LARGE, FLOAT)]
    results = [result(BASELINE), result(FLOAT, None, row(9.0, LARGE))]
    decided = races(results, race_shape({BASELINE: []}))
    found = recommendations(with_races(results, decided), decided)[0]
    assert found.variant == BASELINE
    assert [said(one.reason) for one in found.rejected] == ["not measured at this shape"]


def test_the_race_of_another_model_or_host_decides_nothing() -> None:
    results = [result(BF16, 3.0, **place) for place in ({"model": "n"}, {"host": "k"})]
    decided = races([result(BF16, 3.0)], raced(bf16=3.0))
    found = recommendations(with_races(results, {}), decided)
    told = [(one.model, one.host, one.variant) for one in found]
    assert told == [("n", PLACE, None), ("m", "k", None)]


def test_the_device_whose_winner_takes_the_shortest_time_is_chosen() -> None:
    """Ten times a slow baseline is not more than three times one that is five times as fast."""
    far = {"baseline": "cuda-pytorch-fp32"}
    slow = {"p50_s": 0.05, "mean_s": 0.05}
    tensorrt = "cuda-tensorrt-fp16"
    eager = result("cuda-pytorch-fp32", None, row(None, **slow), **far)
    fast = row(10.0, p50_s=0.005, mean_s=0.005)
    results = [*KEPT[:2], eager, result(tensorrt, None, fast, **far)]
    decided = races(results, raced(bf16=3.0))
    decided |= races(results, race_shape({tensorrt: []}), device="cuda")
    (found,) = recommendations(with_races(results, decided), decided)
    assert found.variant == BF16
    assert reasons(found)[tensorrt] == f"slower: 5 ms per call, {BF16} takes 3.33 ms"
    assert reasons(found)["cuda-pytorch-fp32"] == f"slower: 50 ms per call, {BF16} takes 3.33 ms"
    results = [result(BF16, 3.0), result(tensorrt, None, lost())]
    decided = races(results, race_shape({BF16: []}))
    (found,) = recommendations(with_races(results, decided), decided)
    assert (found.variant, found.provisional) == (BF16, True)
