"""Who takes part in a race, by what was measured before it."""

from tightrope.decide.finalists import MOST, Candidate, Finalists, finalists
from tightrope.statistics import Interval

BASELINE = "cpu-pytorch-fp32"
FLOAT, INT8 = "cpu-onnxruntime-fp32", "cpu-onnxruntime-int8-minmax-64"
DYNAMIC = "cpu-onnxruntime-int8-dynamic"
BF16, NNCF = "cpu-openvino-bf16", "cpu-openvino-int8-nncf-64"


def candidate(variant, speedup, verdict="kept", spread=0.05) -> Candidate:
    ends = Interval(speedup, speedup * (1 - spread), speedup * (1 + spread))
    return Candidate(variant, ends, verdict)


def test_who_may_be_the_fastest_races_and_the_best_pair_of_each_engine() -> None:
    for known, contenders, pairs in (
        # who is surely behind does not race
        ([(BASELINE, 1.0), (BF16, 3.0), (FLOAT, 2.9), (INT8, 2.0)], [BF16, FLOAT], [(INT8, FLOAT)]),
        # who does not keep the answers contends for nothing
        ([(FLOAT, 2.0), (BF16, 5.0, "dropped"), (NNCF, 5.0, "undecided")], [FLOAT], [(NNCF, BF16)]),
        # a wide interval contends and does not shut out the others
        ([(BF16, 9.0, "kept", 0.7), (FLOAT, 3.0)], [FLOAT, BF16], []),
        # the best in float and the best quantized of each engine race too
        (
            [
                *((BASELINE, 1.0), (FLOAT, 1.2), (INT8, 1.1), (DYNAMIC, 1.3), (BF16, 4.0)),
                *(("cpu-openvino-fp32", 1.5), (NNCF, 3.0)),
            ],
            [BF16],
            [(NNCF, BF16), (DYNAMIC, FLOAT)],
        ),
        # those with the best answers stand for an engine
        ([(FLOAT, 1.0), (INT8, 4.0, "dropped"), (DYNAMIC, 2.0)], [DYNAMIC], [(DYNAMIC, FLOAT)]),
        # the engine of another device is another engine
        ([("cuda-onnxruntime-fp16", 2.0), (INT8, 1.0)], ["cuda-onnxruntime-fp16"], []),
        ([(INT8, 1.0), (DYNAMIC, 1.0)], [INT8, DYNAMIC], []),
        ([], [], []),
    ):
        assert finalists(candidate(*one) for one in known) == Finalists(contenders, pairs)


def test_each_takes_part_once_the_best_first_or_those_that_meet_a_goal() -> None:
    many = [candidate(f"cpu-onnxruntime-int8-minmax-{n}", 2 + 0.001 * n) for n in range(1, 21)]
    found = finalists(many)
    assert (len(found.contenders), found.contenders[0]) == (MOST, many[-1].variant)
    assert Finalists([INT8, FLOAT], [(INT8, FLOAT)]).names == [INT8, FLOAT]
    chosen = Finalists([BF16, FLOAT], [(INT8, FLOAT), (NNCF, BF16)])
    assert chosen.names == [BF16, NNCF, FLOAT, INT8]
    # the fastest that meet a goal race in pairs, though others are faster
    slower = [candidate(BF16, 2.0), candidate(DYNAMIC, 1.98), candidate(BASELINE, 1.0)]
    found = finalists([candidate(FLOAT, 4.0), *slower], slower)
    assert found == Finalists([FLOAT], [(DYNAMIC, FLOAT), (BF16, DYNAMIC)])
    found = finalists([candidate(FLOAT, 4.0), slower[0]], slower[:1])
    assert found == Finalists([FLOAT], [(BF16, FLOAT)])
    every = [candidate(BF16, 3.0), candidate(FLOAT, 2.9), candidate(BASELINE, 1.0)]
    assert finalists(every, every) == finalists(every) == finalists(every, [])
