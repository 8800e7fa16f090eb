"""Corrections for many rows, and the scatter between two runs."""

import random
import statistics

import pytest
from scipy.stats import false_discovery_control, norm
from tightrope.compare.speed import adjusted, birge_ratio, p_value
from tightrope.statistics import LEVEL


def test_p_values_and_their_correction_are_those_of_scipy() -> None:
    draw = random.Random(0)
    for count in (1, 2, 7, 40):
        values = [draw.random() ** 3 for _ in range(count)]
        assert adjusted(values) == pytest.approx(list(false_discovery_control(values)))
    assert adjusted([]) == []
    for z in (-2.5, 0.0, 1.0):
        assert p_value(z) == pytest.approx(2 * norm.sf(abs(z)))


def test_rows_without_a_difference_are_rarely_beyond_the_noise() -> None:
    """However many rows: about one comparison in twenty has any."""
    draw = random.Random(1)
    for rows in (4, 90):
        any_beyond = 0
        for _ in range(400):
            z = [draw.gauss(0, 1) for _ in range(rows)]
            scale = birge_ratio([z])
            any_beyond += any(p <= LEVEL for p in adjusted([p_value(one / scale) for one in z]))
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
