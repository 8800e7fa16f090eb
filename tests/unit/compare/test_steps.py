"""Steps in a series."""

import math
import random

import pytest
from tightrope.compare.steps import Measured, steps


def series(
    *means: float, error: float = 0.01, spread: float = 0.01, seed: int = 0
) -> list[Measured]:
    draw = random.Random(seed)
    return [Measured(draw.gauss(mean, spread), error) for mean in means]


def test_a_step_is_found_with_its_size_and_place() -> None:
    (step,) = steps(series(*[0.0] * 6, *[math.log(1.1)] * 5))
    assert step.place == 6
    assert step.low < 1.1 < step.high
    assert step.ratio == pytest.approx(1.1, rel=0.02)


def test_two_steps_are_found_in_their_order() -> None:
    found = steps(series(*[0.0] * 6, *[0.2] * 6, *[0.1] * 6))
    assert [one.place for one in found] == [6, 12]


def test_steady_series_rarely_have_a_step() -> None:
    many = [steps(series(*[0.0] * 12, seed=seed)) for seed in range(200)]
    assert sum(map(bool, many)) <= 20


def test_a_series_that_scatters_beyond_its_intervals_rarely_has_a_step() -> None:
    many = [steps(series(*[0.0] * 12, spread=0.05, seed=seed)) for seed in range(200)]
    assert sum(map(bool, many)) <= 20


def test_one_measurement_alone_is_no_step() -> None:
    assert steps(series(*[0.0] * 6, 0.5)) == []


@pytest.mark.parametrize("count", range(4))
def test_a_series_that_is_too_short_has_no_step(count: int) -> None:
    assert steps(series(*[float(one) for one in range(count)])) == []
