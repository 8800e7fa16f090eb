"""Topologies are folders as the kernel writes them, of the processors that this process has."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from busy import PROCESSORS
from tightrope.jobs.child import supervised
from tightrope.machine import cores
from tightrope.machine.cores import (
    cpu_quota,
    first_processor_per_core,
    frequency,
    intra_op_threads,
    physical_cores,
    pinned_processors,
)
from tiny_model import LIMITS

FIRST, LAST = PROCESSORS[0], PROCESSORS[-1]
TWO_PROCESSORS = pytest.mark.skipif(len(PROCESSORS) < 2, reason="needs two processors")


def within(processors: list[int], ask: Callable[..., Any], *arguments: Any) -> Any:
    """The answer in a process that may use only these processors."""

    def restricted() -> Any:
        os.sched_setaffinity(0, processors)
        return ask(*arguments)

    return supervised(restricted, limits=LIMITS)


def write_topology(
    folder: Path, siblings: dict[int, str], frequencies: dict[int, int] | None = None
) -> Path:
    for number, names in siblings.items():
        file = folder / f"cpu{number}" / "topology" / "thread_siblings_list"
        file.parent.mkdir(parents=True)
        file.write_text(f"{names}\n")
    for number, kilohertz in (frequencies or {}).items():
        file = folder / f"cpu{number}" / "cpufreq" / "cpuinfo_max_freq"
        file.parent.mkdir(parents=True)
        file.write_text(f"{kilohertz}\n")
    return folder


def separate() -> dict[int, str]:
    return {number: str(number) for number in PROCESSORS}


def test_threads_of_the_configuration_are_taken_as_they_are() -> None:
    assert [intra_op_threads(setting) for setting in (1, 3, "7")] == [1, 3, 7]


def test_auto_is_one_thread_for_each_physical_core_in_reach() -> None:
    assert intra_op_threads("auto") == physical_cores()
    assert 1 <= physical_cores() <= len(PROCESSORS)
    assert within([LAST], intra_op_threads, "auto") == 1


def test_a_process_is_pinned_to_processors_that_it_may_use() -> None:
    for threads in range(1, physical_cores() + 1):
        chosen = pinned_processors(threads)
        assert len(set(chosen)) == threads
        assert set(chosen) <= set(PROCESSORS)
        assert chosen == sorted(chosen)
    assert within([LAST], pinned_processors, 1) == [LAST]


def test_with_more_threads_than_cores_all_processors_in_reach_are_used() -> None:
    assert pinned_processors(len(PROCESSORS) + 1) == PROCESSORS
    assert within([FIRST], pinned_processors, 2) == [FIRST]


@TWO_PROCESSORS
def test_of_each_core_one_processor_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_core = {number: f"{FIRST},{LAST}" for number in (FIRST, LAST)}
    monkeypatch.setattr(cores, "TOPOLOGY", write_topology(tmp_path, one_core))
    assert within([FIRST, LAST], first_processor_per_core) == [FIRST]
    assert within([FIRST, LAST], physical_cores) == 1
    assert within([FIRST, LAST], pinned_processors, 1) == [FIRST]
    assert within([FIRST, LAST], pinned_processors, 2) == sorted([FIRST, LAST])


@TWO_PROCESSORS
def test_a_core_of_which_only_the_second_processor_is_in_reach_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_core = {number: f"{FIRST},{LAST}" for number in (FIRST, LAST)}
    monkeypatch.setattr(cores, "TOPOLOGY", write_topology(tmp_path, one_core))
    assert within([LAST], pinned_processors, 1) == [LAST]


@TWO_PROCESSORS
def test_the_fastest_processors_are_chosen_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frequencies = {number: 2_000_000 for number in PROCESSORS} | {LAST: 3_000_000}
    monkeypatch.setattr(cores, "TOPOLOGY", write_topology(tmp_path, separate(), frequencies))
    assert pinned_processors(1) == [LAST]
    assert pinned_processors(2) == [FIRST, LAST]


def test_where_the_kernel_says_nothing_each_processor_is_a_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cores, "TOPOLOGY", tmp_path)
    assert first_processor_per_core() == PROCESSORS
    assert pinned_processors(1) == [FIRST]
    assert frequency(FIRST) is None


def test_a_frequency_is_the_kernels_in_kilohertz(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cores, "TOPOLOGY", write_topology(tmp_path, {}, {FIRST: 2_400_000}))
    assert frequency(FIRST, "cpuinfo_max_freq") == 2_400_000
    assert frequency(FIRST) is None


def test_the_quota_leaves_at_least_one_processor() -> None:
    assert cpu_quota() >= 1
