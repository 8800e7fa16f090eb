"""Who takes part in a race, by what was measured before it."""

import pytest
from tightrope.records.finalists import MOST, Candidate, Finalists, best_pair, finalists
from tightrope.statistics import Interval

BASELINE = "cpu-pytorch-fp32"
FLOAT, INT8 = "cpu-onnxruntime-fp32", "cpu-onnxruntime-int8-minmax-64"
DYNAMIC = "cpu-onnxruntime-int8-dynamic"
BF16, NNCF = "cpu-openvino-bf16", "cpu-openvino-int8-nncf-64"


def candidate(
    variant: str, speedup: float, verdict: str = "kept", *, spread: float = 0.05
) -> Candidate:
    ends = Interval(speedup, speedup * (1 - spread), speedup * (1 + spread))
    return Candidate(variant, ends, verdict)


def test_who_may_be_the_fastest_races_and_who_is_surely_behind_does_not() -> None:
    found = finalists(
        [
            candidate(BASELINE, 1.0),
            candidate(BF16, 3.0),
            candidate(FLOAT, 2.9),
            candidate(INT8, 2.0),
        ]
    )
    assert found.contenders == [BF16, FLOAT]


def test_who_does_not_keep_the_answers_contends_for_nothing() -> None:
    found = finalists(
        [
            candidate(FLOAT, 2.0),
            candidate(BF16, 5.0, "dropped"),
            candidate(NNCF, 5.0, "undecided"),
        ]
    )
    assert found.contenders == [FLOAT]


def test_a_wide_interval_contends_and_does_not_shut_out_the_others() -> None:
    found = finalists([candidate(BF16, 9.0, spread=0.7), candidate(FLOAT, 3.0)])
    assert found.contenders == [FLOAT, BF16]


def test_the_best_in_float_and_the_best_quantized_of_each_engine_race_too() -> None:
    found = finalists(
        [
            candidate(BASELINE, 1.0),
            candidate(FLOAT, 1.2),
            candidate(INT8, 1.1),
            candidate(DYNAMIC, 1.3),
            candidate(BF16, 4.0),
            candidate("cpu-openvino-fp32", 1.5),
            candidate(NNCF, 3.0),
        ]
    )
    assert found.contenders == [BF16]
    assert found.pairs == [(NNCF, BF16), (DYNAMIC, FLOAT)]
    assert found.names == [BF16, NNCF, DYNAMIC, FLOAT]


def test_of_an_engines_variants_those_with_the_best_answers_stand_for_it() -> None:
    found = finalists(
        [candidate(FLOAT, 1.0), candidate(INT8, 4.0, "dropped"), candidate(DYNAMIC, 2.0)]
    )
    assert found.pairs == [(DYNAMIC, FLOAT)]
    found = finalists([candidate(FLOAT, 1.0), candidate(INT8, 4.0, "dropped")])
    assert found.pairs == [(INT8, FLOAT)]
    assert found.names == [FLOAT, INT8]


def test_the_engine_of_another_device_is_another_engine() -> None:
    both = [candidate("cuda-onnxruntime-fp16", 2.0), candidate(INT8, 1.0)]
    assert finalists(both).pairs == []


@pytest.mark.parametrize("names", [[], [FLOAT], [INT8, DYNAMIC]])
def test_an_engine_without_both_kinds_has_no_pair(names: list[str]) -> None:
    assert best_pair([candidate(name, 1.0) for name in names]) is None


def test_no_more_than_so_many_contend_the_best_first() -> None:
    many = [candidate(f"cpu-onnxruntime-int8-minmax-{n}", 2 + 0.001 * n) for n in range(1, 21)]
    found = finalists(many)
    assert len(found.contenders) == MOST
    assert found.contenders[0] == "cpu-onnxruntime-int8-minmax-20"


def test_a_variant_takes_part_once() -> None:
    found = finalists([candidate(FLOAT, 2.0), candidate(INT8, 2.1)])
    assert found.contenders == [INT8, FLOAT]
    assert found.pairs == [(INT8, FLOAT)]
    assert found.names == [INT8, FLOAT]


def test_without_candidates_nobody_races() -> None:
    assert finalists([]).names == []
    assert finalists([candidate(FLOAT, 2.0, "dropped")]).contenders == []


def test_those_of_a_pair_stand_together_so_that_they_meet_where_memory_is_short() -> None:
    chosen = Finalists([BF16, FLOAT], [(INT8, FLOAT), (NNCF, BF16)])
    assert chosen.names == [BF16, NNCF, FLOAT, INT8]


def test_the_fastest_that_meet_a_goal_race_in_pairs_though_others_are_faster() -> None:
    slower = [candidate(BF16, 2.0), candidate(DYNAMIC, 1.98), candidate(BASELINE, 1.0)]
    found = finalists([candidate(FLOAT, 4.0), *slower], slower)
    assert found.contenders == [FLOAT]
    assert found.pairs == [(DYNAMIC, FLOAT), (BF16, DYNAMIC)]
    assert set(found.names) == {FLOAT, BF16, DYNAMIC}


def test_a_goal_that_one_variant_meets_races_it_with_the_fastest() -> None:
    one = candidate(BF16, 2.0)
    found = finalists([candidate(FLOAT, 4.0), one], [one])
    assert (found.contenders, found.pairs) == ([FLOAT], [(BF16, FLOAT)])


def test_a_goal_that_the_same_variants_meet_changes_no_race() -> None:
    every = [candidate(BF16, 3.0), candidate(FLOAT, 2.9), candidate(BASELINE, 1.0)]
    assert finalists(every, every) == finalists(every) == finalists(every, [])
