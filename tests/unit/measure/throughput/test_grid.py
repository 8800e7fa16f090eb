"""Divisions of the cores among instances."""

from tightrope.measure.throughput.grid import Division, divisions, shares, too_large


def test_auto_divides_all_cores_among_every_divisor_of_them() -> None:
    found = divisions("auto", "auto", cores=12)
    assert found == [(1, 12), (2, 6), (3, 4), (4, 3), (6, 2), (12, 1)]


def test_one_instance_with_all_threads_is_always_first() -> None:
    assert divisions([2, 4], "auto", cores=4) == [(1, 4), (2, 2), (4, 1)]
    assert divisions([1, 2], [1, 2], cores=4) == [(1, 4), (1, 2), (1, 1), (2, 2), (2, 1)]


def test_a_division_that_needs_more_cores_says_so() -> None:
    assert too_large(Division(3, 2), cores=4) == "needs 6 cores, there are 4"
    assert too_large(Division(2, 2), cores=4) is None
    assert (8, 1) in divisions([8], "auto", cores=4)


def test_no_two_instances_share_a_processor() -> None:
    assert shares(Division(2, 2), [0, 2, 4, 6, 8]) == [[0, 2], [4, 6]]
