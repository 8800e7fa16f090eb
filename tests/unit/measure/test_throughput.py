"""Divisions of the cores among instances, and points that cannot win."""

from tightrope.measure import throughput_points as points
from tightrope.measure.throughput import BLOCKS, CALLS_PER_BLOCK, window_seconds
from tightrope.statistics import Interval


def point(instances, per_s, *, batch=1, threads=1, p50_s=0.01, p99_s=0.02) -> points.Measured:
    rate = Interval(per_s, per_s - 1, per_s + 1)
    return points.Measured(instances, threads, batch, rate, p50_s, p99_s)


def test_auto_divides_all_cores_among_every_divisor_and_too_many_say_so() -> None:
    found = points.divisions("auto", "auto", cores=12)
    assert found == [(1, 12), (2, 6), (3, 4), (4, 3), (6, 2), (12, 1)]
    assert points.divisions([2, 4], "auto", cores=4) == [(1, 4), (2, 2), (4, 1)]
    assert points.divisions([1, 2], [1, 2], cores=4) == [(1, 4), (1, 2), (1, 1), (2, 2), (2, 1)]
    # no two instances share a processor
    assert points.shares(points.Division(2, 2), [0, 2, 4, 6, 8]) == [[0, 2], [4, 6]]
    assert points.too_large(points.Division(3, 2), cores=4) == "needs 6 cores, there are 4"
    assert points.too_large(points.Division(2, 2), cores=4) is None
    assert (8, 1) in points.divisions([8], "auto", cores=4)


def test_more_instances_are_skipped_where_fewer_failed_or_more_were_slower() -> None:
    slower = [point(1, 100), point(2, 90)]
    assert points.already_slower(4, 1, slower) == "slower already: 2 instances 90 samples/s, 1 100"
    # another batch, only one smaller number
    assert points.already_slower(4, 2, slower) is None
    assert points.already_slower(2, 1, slower) is None
    # the intervals overlap, and of each number the best threads count
    assert points.already_slower(4, 1, [point(1, 100), point(2, 99)]) is None
    best = [point(1, 100), point(2, 50), point(2, 130, threads=2)]
    assert points.already_slower(4, 1, best) is None
    # where fewer failed
    failed = {"instances": 2, "batch": 4, "reason": "out of memory", "skipped": False}
    broken = [failed, {**failed, "batch": 1, "skipped": True}]
    assert points.broken_before(4, 4, broken) == "failed with 2 instances: out of memory"
    assert points.broken_before(4, 1, broken) is None
    assert points.broken_before(1, 4, broken) is None


SLOW = point(2, 100, batch=4, p99_s=0.03)
FEW_CALLS = point(2, 100, batch=4, p50_s=0.05, p99_s=None)


def test_larger_batches_are_skipped_once_a_percentile_is_over_the_bound() -> None:
    def words(measured: points.Measured, *place: int, bound_s: float | None = 0.025) -> str | None:
        return points.over_the_bound(*place, [measured], bound_s)

    over = "p99 is 30 ms at batch 4 already, over the bound of 25 ms"
    assert words(SLOW, 2, 1, 16) == over
    # no larger batch, another division, within the bound, no bound
    places = ((2, 1, 4), (1, 1, 16), (2, 2, 16))
    assert {words(SLOW, *place) for place in places} == {None}
    assert words(SLOW, 2, 1, 16, bound_s=0.03) is words(SLOW, 2, 1, 16, bound_s=None) is None
    # too few calls for p99
    over = "p50 is 50 ms at batch 4 already, over the bound of 40 ms"
    assert words(FEW_CALLS, 2, 1, 16, bound_s=0.04) == over
    assert words(FEW_CALLS, 2, 1, 16, bound_s=0.06) is None


def test_a_window_is_longer_for_slow_calls_and_for_a_percentile() -> None:
    assert window_seconds(0.001, 1, seconds=2.0, calls=0) == 2.0
    assert window_seconds(1.0, 1, seconds=2.0, calls=0) == BLOCKS * CALLS_PER_BLOCK
    assert window_seconds(0.02, 2, seconds=2.0, calls=1000) == 10.0
