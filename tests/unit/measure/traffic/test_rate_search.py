from collections.abc import Callable

import numpy as np
import pytest
from tightrope.measure.traffic.rate_search import RUNS, RateSearch


def highest_rate(
    passes: Callable[[float], bool], start: float, *, least: float = 0.0
) -> float | None:
    """The highest rate that passed in a whole search."""
    search = RateSearch(start, least=least)
    while search.rate is not None:
        search.record(passes(search.rate))
    return search.low


def up_to(threshold: float) -> tuple[Callable[[float], bool], list[float]]:
    """A test that rates up to `threshold` pass, and the rates that it was asked."""
    asked: list[float] = []

    def passes(rate: float) -> bool:
        asked.append(rate)
        return rate <= threshold

    return passes, asked


@pytest.mark.parametrize("start", [0.013, 1.0, 100.0, 4321.0])
@pytest.mark.parametrize("factor", np.geomspace(1 / 7.9, 4, 25).round(4).tolist())
def test_the_threshold_is_found_within_5_percent(start: float, factor: float) -> None:
    threshold = factor * start
    passes, asked = up_to(threshold)
    found = highest_rate(passes, start)
    assert found is not None
    assert found <= threshold < 1.05 * found
    assert found in asked
    assert len(asked) <= RUNS


def test_it_stops_as_soon_as_it_is_within_5_percent() -> None:
    passes, asked = up_to(100)
    highest_rate(passes, 100)
    assert asked == [100, 150, 122, 110, 105]


@pytest.mark.parametrize("threshold", [0.0, 0.001, 1.0, 1e9])
def test_it_never_tries_more_than_nine_rates(threshold: float) -> None:
    passes, asked = up_to(threshold)
    highest_rate(passes, 1000)
    assert len(asked) == RUNS == 9


def test_where_nothing_passes_there_is_no_rate() -> None:
    passes, asked = up_to(0)
    assert highest_rate(passes, 512) is None
    assert asked == [512 / 2**halved for halved in range(9)]


def test_no_rate_below_the_least_is_tried_but_the_first() -> None:
    passes, asked = up_to(0)
    assert highest_rate(passes, 512, least=60) is None
    assert asked == [512, 256, 128, 64]
    passes, asked = up_to(0)
    highest_rate(passes, 512, least=1000)
    assert asked == [512]


def test_it_goes_up_from_a_low_start() -> None:
    passes, asked = up_to(1e9)
    assert highest_rate(passes, 100) == max(asked) > 2000
    assert asked == sorted(asked)


def test_rates_have_three_digits() -> None:
    passes, asked = up_to(700)
    highest_rate(passes, 1234.5678)
    assert asked[0] == 1230
    assert asked == [float(f"{rate:.3g}") for rate in asked]


def test_a_test_that_is_not_steady_gives_the_highest_rate_that_it_passed() -> None:
    draw = np.random.default_rng(3)
    for _ in range(50):
        passed: list[float] = []

        def passes(rate: float, passed: list[float] = passed) -> bool:
            good = bool(draw.random() < 0.5)
            passed += [rate] * good
            return good

        assert highest_rate(passes, 100) == max(passed, default=None)
