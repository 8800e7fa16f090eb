"""Corrections for many rows, and the scatter between two runs."""

import random
import statistics

import pytest
from tightrope.compare.speed import birge_ratio, p_value, verdicts


def test_rows_without_a_difference_are_rarely_beyond_the_noise() -> None:
    """However many rows: about one comparison in twenty has any."""
    draw = random.Random(1)
    for rows in (4, 90):
        any_beyond = 0
        for _ in range(400):
            z = [draw.gauss(0, 1) for _ in range(rows)]
            scale = birge_ratio([z])
            told = verdicts([(p_value(one / scale), one) for one in z], ("faster", "slower"))
            any_beyond += {*told} != {"same"}
        assert any_beyond / 400 < 0.08


def test_a_scatter_beyond_the_intervals_is_found() -> None:
    draw = random.Random(2)
    found = [birge_ratio([[draw.gauss(0, 3) for _ in range(40)]]) for _ in range(50)]
    assert statistics.fmean(found) == pytest.approx(3, rel=0.1)


def test_a_shift_of_all_one_outlier_and_a_difference_of_a_group_are_no_scatter() -> None:
    assert birge_ratio([[5.0] * 9 + [30.0]]) == 1.0
    assert birge_ratio([[1.0, 9.0]]) == 1.0
    assert birge_ratio([[0.0, 0.1, -0.1, 0.2], [8.0, 8.1, 7.9, 8.2]]) == 1.0
    assert birge_ratio([[0.0, 8.0, 0.1, 8.2, 0.1, 7.9]]) > 4
    assert birge_ratio([[0.0], [8.0]] * 9) == 1.0  # none to compare with
