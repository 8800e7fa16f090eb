"""The table of latencies between measured structures, and the choice that is measured."""

import pytest
from tightrope.measure.structure_choice import TOLERANCE, Choice, best_of, choices
from tightrope.measure.structures import points, ratio, rounds_that_count, table_of
from tightrope.model.structures import Importance, Judged, Structure
from tightrope.records.record import Round

BERT, CONVNEXT, NARROW = Structure((6,), 256), Structure((3, 3, 9, 3), None), Structure((1, 5), 96)
HEADED = Structure((6,), 256, 12)


def linear(structure: Structure) -> float:
    """A call that takes a tenth for the rest, and as long for a layer as for 256 neurons."""
    (depth,), width = structure.depths, structure.width or 0
    return 0.1 + 0.9 * depth * (1 + width / 256) / 12


def with_heads(structure: Structure) -> float:
    """Of the time of all layers 0.3 are for the heads."""
    (depth,), heads = structure.depths, structure.heads or 0
    return linear(structure) - 0.3 * depth / 6 * (1 - heads / 12)


def by_stage(structure: Structure) -> float:
    """Blocks of the stages take 4, 3, 2 and 1 parts of the time."""
    parts = zip((4, 3, 2, 1), structure.depths, strict=True)
    whole = zip((4, 3, 2, 1), CONVNEXT.depths, strict=True)
    share = sum(part * depth for part, depth in parts) / sum(part * depth for part, depth in whole)
    return 0.2 + 0.8 * share


def by_width(structure: Structure) -> float:
    """Blocks take as long as their neurons, the first stage as long as a block of the second."""
    return 0.5 + sum(structure.depths) * (structure.width or 0) / (6 * 96) / 2


def rounds_of(own: float, *, count: int = 8, foreign: float = 0.0) -> list[Round]:
    one = Round(blocks_s=[[0.002] * 3, [0.002 * own] * 3], foreign_cores=foreign)
    return [one] * count


def judged() -> Judged:
    layers = [Importance([float(index % 7) for index in range(256)], 1.0)] * 6
    return Judged([layers], {64: 2.0, 128: 0.5, 256: 0.0})


def test_few_structures_are_measured_the_parent_first() -> None:
    found = points(BERT)
    assert found[0] == BERT
    whole = {Structure((depth,), width) for depth in (1, 3, 6) for width in (64, 128, 256)}
    assert set(found) == whole
    stages = points(CONVNEXT)
    assert len(stages) == len(set(stages)) == 6
    assert Structure((3, 3, 5, 3), None) in stages
    # finer steps of neurons where they are few
    narrow = {Structure((1, depth), width) for depth in (1, 3, 5) for width in (16, 48, 96)}
    assert set(points(NARROW)) == narrow
    # for fewer heads the whole model with half of them and with one
    headed = {Structure(one.depths, one.width, 12) for one in whole}
    assert set(points(HEADED)) == headed
    fewer = {Structure((6,), 256, heads) for heads in (1, 6)}
    assert set(points(HEADED, fewer_heads=True)) == headed | fewer


def test_times_between_the_measured_ones_are_interpolated() -> None:
    for parent, seconds, widths, heads, depths in (
        (BERT, linear, range(64, 257, 64), [None], [(depth,) for depth in range(1, 7)]),
        # stages add up
        (CONVNEXT, by_stage, [None], [None], [(1, 1, 1, 1), (2, 3, 4, 1), (3, 1, 8, 2)]),
        (NARROW, by_width, range(16, 97, 16), [None], [(1, 4), (1, 1)]),
        # fewer heads save the same at each width
        (HEADED, with_heads, range(64, 257, 64), range(1, 13), [(1,), (2,), (6,)]),
    ):
        measured = points(parent, fewer_heads=len(heads) > 1)
        table = table_of({one: seconds(one) for one in measured}, parent)
        assert set(table) == {(width, head) for width in widths for head in heads}
        for (width, head), costs in table.items():
            for depth in depths:
                assert costs.of(depth) == pytest.approx(seconds(Structure(depth, width, head)))


TABLE = table_of({one: linear(one) for one in points(BERT)}, BERT)


def test_a_wrong_prediction_is_corrected_and_who_keeps_the_most_is_best(capsys) -> None:
    (only,) = choices(judged(), TABLE, 0.5, lambda one: rounds_of(linear(one)))
    assert only.predicted == pytest.approx(only.measured)
    assert 0.45 < only.predicted <= 0.5
    # out of reach the smallest structure is
    tried = choices(judged(), TABLE, 0.01, lambda one: rounds_of(linear(one)))
    assert [one.structure for one in tried] == [Structure((1,), 64)]
    # each takes a fifth longer than what lies between the measured ones
    tried = choices(judged(), TABLE, 0.5, lambda one: rounds_of(1.2 * linear(one)))
    assert tried[0].measured == pytest.approx(1.2 * tried[0].predicted)
    assert best_of(judged(), tried, 0.5) is tried[-1] is not tried[0]
    assert 0.45 < tried[-1].measured <= 0.5 * (1 + TOLERANCE)
    # of those that meet the target the one that keeps the most
    deep, wide, slow = Structure((4,), 64), Structure((2,), 256), Structure((5,), 256)
    tried = [Choice(deep, 0.5, 0.5, []), Choice(wide, 0.5, 0.4, []), Choice(slow, 0.5, 0.6, [])]
    assert judged().kept(wide) == pytest.approx(2.0)
    assert judged().kept(deep) == pytest.approx(4 * (1 - 2 / 6))
    assert best_of(judged(), tried, 0.5).structure == deep
    assert best_of(judged(), tried[1:], 0.5).structure == wide
    assert best_of(judged(), tried, 0.1).structure == wide
    # disturbed rounds count where others are few
    quiet, disturbed = rounds_of(0.5), rounds_of(2.0, foreign=1.5)
    assert ratio(rounds_that_count(quiet + disturbed), 1) == pytest.approx(0.5)
    assert "disturbed" not in capsys.readouterr().out
    assert ratio(rounds_that_count(disturbed), 1) == pytest.approx(2.0)
    assert "8 of 8 rounds were disturbed by other load" in capsys.readouterr().out
