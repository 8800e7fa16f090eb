"""What the summary says of races, from records with planted times."""

from typing import Any

import msgspec
import pytest
from raced import planted, race_record, race_shape
from tightrope.decide.race import Race, is_undecided, race_entries, ratio_between
from tightrope.records.race import RacedShape

QUICK, SLOW, THIRD = "cpu-onnxruntime-fp32", "cpu-openvino-fp32", "cpu-pytorch-fp32"
INT8 = "cpu-onnxruntime-int8-minmax-64"
SIZES = {QUICK: 400, SLOW: 300, THIRD: 500, INT8: 100}


def entry(*heats: Any, accept_disturbed: bool = False, sizes: Any = SIZES, **changes: Any) -> Race:
    """The entry of a race at one shape, in so many heats, which is of its type."""
    record = race_record(*([heat] for heat in heats), **changes)
    known = {("m", name): size for name, size in sizes.items()}
    (found,) = race_entries([record], known, accept_disturbed=accept_disturbed).values()
    assert msgspec.convert(msgspec.to_builtins(found), Race) == found
    return found


def raced(seconds: dict[str, float], rounds: int = 40, **changes: Any) -> RacedShape:
    return race_shape(planted(seconds, rounds), **changes)


def test_of_equal_ones_the_smaller_files_decide() -> None:
    found = entry(raced({QUICK: 0.0100, SLOW: 0.01004}, stop="equal"))
    assert (found.fastest, found.variant) == (QUICK, SLOW)
    assert found.equal == [QUICK]
    assert (found.status, found.open) == ("decided", [])
    # of files as large the first by name, whichever is the fastest by estimate
    same = {QUICK: 300, SLOW: 300}
    for seconds in ({QUICK: 0.0100, SLOW: 0.01004}, {QUICK: 0.01004, SLOW: 0.0100}):
        found = entry(raced(seconds), sizes=same)
        assert (found.variant, found.equal, found.open) == (QUICK, [SLOW], [])


@pytest.mark.parametrize("stop", ["time limit", "none faster"])
@pytest.mark.parametrize("sizes", [{QUICK: 400, SLOW: 300}, {QUICK: 400, SLOW: 400}])
def test_those_not_told_apart_are_chosen_alike_whichever_was_the_fastest_by_estimate(stop, sizes):
    expected = min(sizes, key=lambda name: (sizes[name], name))
    fastest = set()
    for seconds in ({QUICK: 0.0100, SLOW: 0.0101}, {QUICK: 0.0101, SLOW: 0.0100}):
        times = planted(seconds, 24, spread=0.05)
        found = entry(race_shape(times, stop=stop), sizes=sizes)
        assert (found.variant, found.equal) == (expected, [])
        assert found.open == [({QUICK, SLOW} - {expected}).pop()]
        fastest.add(found.fastest)
    assert fastest == {QUICK, SLOW}


def test_who_was_beaten_or_died_is_not_chosen_though_its_time_was_short() -> None:
    shape = raced({QUICK: 0.01, SLOW: 0.02, THIRD: 0.03}, out={QUICK: {"round": 6, "by": SLOW}})
    found = entry(shape, left_out={THIRD: "killed by SIGKILL"})
    assert found.variant == SLOW
    assert found.left_out == {THIRD: "killed by SIGKILL"}
    died = {QUICK: "killed", SLOW: "out of memory"}
    found = entry(raced({QUICK: 0.01, SLOW: 0.02}), left_out=died)
    assert (found.status, found.variant, found.fastest) == ("failed", None, None)
    assert (found.reason, found.left_out) == (None, died)
    # a single one wins without a round
    found = entry(race_shape({QUICK: []}, stop=None))
    assert (found.status, found.variant, found.rounds) == ("decided", QUICK, 0)
    assert (found.stop, found.ratios) == (None, [])
    assert race_entries([race_record()], {}, accept_disturbed=False) == {}
    assert not is_undecided(race_record())


@pytest.mark.parametrize("rest", [{}, {"disturbed": 30, "stop": "time limit"}])
def test_of_a_pair_that_does_not_contend_neither_wins(rest: dict[str, Any]) -> None:
    known, pair = {QUICK: 0.01, INT8: 0.005, SLOW: 0.01}, (INT8, QUICK)
    found = entry(raced(known, contenders=[SLOW], pairs=[pair], **rest))
    assert (found.variant, found.raced) == (SLOW, [QUICK, INT8, SLOW])
    assert ratio_between(found, *pair).ratio == pytest.approx(2, rel=0.01)


def test_a_disturbed_race_has_no_winner_but_a_reason_with_the_loudest() -> None:
    shape = raced({QUICK: 0.01, SLOW: 0.02}, 24, disturbed=18)
    found = entry(shape, busiest={"python3 train.py": 0.97})
    assert (found.status, found.variant, found.fastest) == ("disturbed", None, None)
    assert found.open == [QUICK, SLOW]
    assert found.reason == (
        "other load disturbed the race: 6 of 24 rounds are left; their threads waited for a "
        "CPU that another program used; the busiest: python3 train.py (97 % of a core)"
    )
    assert found.provisional is False
    assert is_undecided(race_record([shape]))


def test_with_half_of_the_rounds_disturbed_only_what_was_decided_counts() -> None:
    for stop, disturbed, decided in (
        *(("time limit", 12, False), ("none faster", 12, True)),
        *(("time limit", 11, True), ("none faster", 11, True)),
    ):
        shape = raced({QUICK: 0.01, SLOW: 0.0102}, 24, disturbed=disturbed, stop=stop)
        found = entry(shape)
        assert found.status == ("decided" if decided else "disturbed")
        assert (found.reason is None) == decided
        assert is_undecided(race_record([shape])) is not decided


def test_an_accepted_disturbed_race_has_a_provisional_winner() -> None:
    shape = raced({QUICK: 0.01, SLOW: 0.02}, 24, disturbed=18)
    found = entry(shape, accept_disturbed=True)
    assert (found.status, found.variant, found.provisional) == ("decided", QUICK, True)
    assert (found.reason, found.open) == (None, [SLOW])
    assert ratio_between(found, QUICK, SLOW).ratio == pytest.approx(2, rel=0.02)
    # the tie-break counts disturbed rounds too
    shape = raced({QUICK: 0.0100, SLOW: 0.0101}, 24, disturbed=18)
    found = entry(shape, accept_disturbed=True)
    assert (found.fastest, found.variant, found.provisional) == (QUICK, SLOW, True)
    # of one that was decided it changes nothing
    shape = raced({QUICK: 0.01, SLOW: 0.02}, 24, disturbed=3)
    assert entry(shape, accept_disturbed=True) == entry(shape)
    assert not is_undecided(race_record([shape]))


def test_of_several_heats_the_last_one_has_the_winner_and_all_have_ratios() -> None:
    first = raced({QUICK: 0.01, THIRD: 0.02}, 24, out={THIRD: {"round": 6, "by": QUICK}})
    last = raced({QUICK: 0.01, SLOW: 0.005}, 24, out={QUICK: {"round": 9, "by": SLOW}})
    found = entry(first, last)
    assert (found.variant, found.heats, found.rounds) == (SLOW, 2, 48)
    assert found.raced == [QUICK, THIRD, SLOW]
    assert found.out == {THIRD: QUICK, QUICK: SLOW}
    assert len(found.ratios) == 4
    one, other = ratio_between(found, QUICK, THIRD), ratio_between(found, THIRD, QUICK)
    assert one.ratio * other.ratio == pytest.approx(1)
    assert one.low * other.high == pytest.approx(1)
    assert (one.verdict, other.verdict) == ("faster", "slower")
    assert ratio_between(found, SLOW, THIRD) is None
