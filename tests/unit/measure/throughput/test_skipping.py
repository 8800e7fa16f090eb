"""Points that cannot win."""

from tightrope.measure.throughput.instances import BLOCKS, CALLS_PER_BLOCK, window_seconds
from tightrope.measure.throughput.skipping import (
    Broken,
    Measured,
    already_slower,
    broken_before,
    over_the_bound,
)
from tightrope.statistics import Interval


def point(
    instances: int,
    per_s: float,
    *,
    batch: int = 1,
    threads: int = 1,
    off: float = 1.0,
    p50_s: float | None = 0.01,
    p99_s: float | None = 0.02,
) -> Measured:
    rate = Interval(per_s, per_s - off, per_s + off)
    return Measured(instances, threads, batch, rate, p50_s, p99_s)


def test_more_instances_are_skipped_where_the_last_increase_was_surely_slower() -> None:
    measured = [point(1, 100), point(2, 90)]
    assert already_slower(4, 1, measured) == ("slower already: 2 instances 90 samples/s, 1 100")
    assert already_slower(4, 2, measured) is None, "another batch"
    assert already_slower(2, 1, measured) is None, "only one number of instances is smaller"


def test_more_instances_are_tried_where_the_intervals_overlap_or_it_was_faster() -> None:
    assert already_slower(4, 1, [point(1, 100), point(2, 99)]) is None
    assert already_slower(4, 1, [point(1, 100), point(2, 120)]) is None


def test_of_each_number_of_instances_the_best_threads_count() -> None:
    measured = [point(1, 100), point(2, 50, threads=1), point(2, 130, threads=2)]
    assert already_slower(4, 1, measured) is None


def test_larger_batches_are_skipped_once_p99_is_over_the_bound() -> None:
    measured = [point(2, 100, batch=4, p99_s=0.03)]
    words = "p99 is 30 ms at batch 4 already, over the bound of 25 ms"
    assert over_the_bound(2, 1, 16, measured, 0.025) == words
    assert over_the_bound(2, 1, 4, measured, 0.025) is None, "no smaller batch was over it"
    assert over_the_bound(1, 1, 16, measured, 0.025) is None, "other instances"
    assert over_the_bound(2, 2, 16, measured, 0.025) is None, "other threads"
    assert over_the_bound(2, 1, 16, measured, 0.03) is None
    assert over_the_bound(2, 1, 16, measured, None) is None


def test_the_median_shows_it_where_the_calls_are_too_few_for_p99() -> None:
    measured = [point(1, 100, p50_s=0.05, p99_s=None)]
    assert over_the_bound(1, 1, 4, measured, 0.04) == (
        "p50 is 50 ms at batch 1 already, over the bound of 40 ms"
    )
    assert over_the_bound(1, 1, 4, measured, 0.06) is None


def test_more_instances_are_skipped_where_fewer_failed() -> None:
    broken = [Broken(2, 4, "out of memory")]
    assert broken_before(4, 4, broken) == "failed with 2 instances: out of memory"
    assert broken_before(4, 1, broken) is None
    assert broken_before(1, 4, broken) is None


def test_a_window_is_longer_for_slow_calls_and_for_a_percentile() -> None:
    assert window_seconds(0.001, 1, seconds=2.0, calls=0) == 2.0
    assert window_seconds(1.0, 1, seconds=2.0, calls=0) == BLOCKS * CALLS_PER_BLOCK
    assert window_seconds(0.02, 2, seconds=2.0, calls=1000) == 10.0
