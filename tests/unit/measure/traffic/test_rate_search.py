import numpy as np
import pytest
from tightrope.measure.traffic_scenarios import RUNS, RateSearch


def searched(
    threshold: float, start: float, least: float = 0.0
) -> tuple[float | None, list[float]]:
    """The highest rate that passed in a whole search, rates up to a threshold, and all rates."""
    search, asked = RateSearch(start, least=least), []
    while search.rate is not None:
        asked.append(search.rate)
        search.record(search.rate <= threshold)
    return search.low, asked


@pytest.mark.parametrize("start", [0.013, 1.0, 100.0, 4321.0])
def test_the_threshold_is_found_within_5_percent(start: float) -> None:
    for factor in np.geomspace(1 / 7.9, 4, 25):
        threshold = float(factor * start)
        found, asked = searched(threshold, start)
        assert found is not None
        assert found <= threshold < 1.05 * found
        assert found in asked
        assert len(asked) <= RUNS


@pytest.mark.parametrize(
    ("threshold", "start", "least", "asked"),
    [
        # it stops as soon as it is within 5 percent
        (100, 100, 0, [100, 150, 122, 110, 105]),
        # where nothing passes there is no rate
        (0, 512, 0, [512 / 2**halved for halved in range(RUNS)]),
        # none below the least is tried but the first
        (0, 512, 60, [512, 256, 128, 64]),
        (0, 512, 1000, [512]),
    ],
)
def test_rates_are_tried_in_turn(
    threshold: float, start: float, least: float, asked: list[float]
) -> None:
    found, tried = searched(threshold, start, least)
    assert tried == asked
    assert found == (100 if threshold else None)


def test_it_goes_up_from_a_low_start_in_rates_of_three_digits() -> None:
    found, asked = searched(1e9, 100)
    assert found == max(asked) > 2000
    assert asked == sorted(asked)
    _, asked = searched(700, 1234.5678)
    assert asked[0] == 1230
    assert asked == [float(f"{rate:.3g}") for rate in asked]


def test_a_test_that_is_not_steady_gives_the_highest_rate_that_it_passed() -> None:
    draw = np.random.default_rng(3)
    for _ in range(50):
        search, passed = RateSearch(100, least=0.0), []
        while search.rate is not None:
            good = bool(draw.random() < 0.5)
            passed += [search.rate] * good
            search.record(good)
        assert search.low == max(passed, default=None)
