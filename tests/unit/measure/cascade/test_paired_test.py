"""The tests behind a threshold: exact ones, so they may fail to prove but not prove too often."""

from math import comb

import pytest
from tightrope.measure.cascade.paired_test import binomial_p_value, paired_p_value

LEVEL = 0.05


def trinomial(lost: int, gained: int, samples: int, loss: float, gain: float) -> float:
    """The probability of these counts, from its definition."""
    ways = comb(samples, lost) * comb(samples - lost, gained)
    return ways * loss**lost * gain**gained * (1 - loss - gain) ** (samples - lost - gained)


@pytest.mark.parametrize("gain", [0.0, 0.01, 0.03, 0.1, 0.2, 0.4])
def test_at_the_bound_it_rejects_in_at_most_one_of_twenty_cases(gain: float) -> None:
    samples, bound = 40, 0.15
    rejected = sum(
        trinomial(lost, gained, samples, gain + bound, gain)
        for lost in range(samples + 1)
        for gained in range(samples + 1 - lost)
        if paired_p_value(lost, gained, samples, bound) <= LEVEL
    )
    assert 0.02 < rejected <= LEVEL


def test_it_proves_a_point_with_1024_samples_of_which_few_changed() -> None:
    assert paired_p_value(0, 0, 1024, 0.01) < 0.01
    assert paired_p_value(4, 0, 1024, 0.01) <= LEVEL < paired_p_value(5, 0, 1024, 0.01)
    assert paired_p_value(10, 10, 1024, 0.01) <= LEVEL < paired_p_value(20, 20, 1024, 0.01)


def test_more_lost_is_less_proof_and_more_gained_is_more() -> None:
    values = [paired_p_value(lost, 5, 500, 0.03) for lost in range(30)]
    assert values == sorted(values)
    assert values[-1] == 1.0
    assert paired_p_value(12, 12, 500, 0.03) < paired_p_value(12, 3, 500, 0.03)


def test_too_few_samples_prove_nothing_even_without_a_change() -> None:
    assert paired_p_value(0, 0, 299, 0.01) > LEVEL >= paired_p_value(0, 0, 301, 0.01)


def test_all_samples_gained_are_proof_and_all_lost_are_none() -> None:
    assert paired_p_value(0, 30, 30, 0.1) < 0.01
    assert paired_p_value(30, 0, 30, 0.1) == 1.0


def test_changed_answers_are_judged_by_the_binomial_test() -> None:
    expected = sum(comb(60, k) * 0.1**k * 0.9 ** (60 - k) for k in range(3))
    assert binomial_p_value(2, 60, 0.1) == pytest.approx(expected)
