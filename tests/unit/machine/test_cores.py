"""Topologies are folders as the kernel writes them, of processors that this process may use."""

import os
from pathlib import Path
from typing import Any

import pytest
from busy import PROCESSORS
from tightrope.jobs.child import supervised
from tightrope.machine import cores
from tiny_model import LIMITS

FIRST, LAST = PROCESSORS[0], PROCESSORS[-1]
BOTH = [FIRST, LAST]
SLOW, FAST = 2_000_000, 3_000_000


def write_topology(folder: Path, siblings: str | None, fastest: int | None) -> Path:
    """The first and the last processor; the others are not told of."""
    for number in BOTH:
        processor = folder / f"cpu{number}"
        for name in ("topology", "cpufreq"):
            (processor / name).mkdir(parents=True, exist_ok=True)
        file = processor / "topology" / "thread_siblings_list"
        file.write_text(f"{number if siblings is None else siblings}\n")
        if fastest is not None:
            kilohertz = FAST if number == fastest else SLOW
            (processor / "cpufreq" / "cpuinfo_max_freq").write_text(f"{kilohertz}\n")
    return folder


def test_threads_are_the_physical_cores_unless_they_are_set(tmp_path, monkeypatch) -> None:
    assert [cores.intra_op_threads(setting) for setting in (1, 3, "7")] == [1, 3, 7]
    assert cores.intra_op_threads("auto") == cores.physical_cores()
    assert 1 <= cores.physical_cores() <= len(PROCESSORS)
    assert cores.cpu_quota() >= 1
    # by default each processor is a core
    monkeypatch.setattr(cores, "TOPOLOGY", tmp_path)
    assert cores.physical_cores() == min(len(PROCESSORS), cores.cpu_quota())
    assert cores.pinned_processors(1) == [FIRST]
    assert cores.frequency(FIRST) is None


@pytest.mark.skipif(len(PROCESSORS) < 2, reason="needs two processors")
def test_an_engine_is_pinned_to_one_processor_of_each_core_the_fastest_first(monkeypatch, tmp_path):
    one_core = f"{FIRST},{LAST}"
    for place, (siblings, fastest, within, pinned) in enumerate(
        (
            # processors by the number of threads
            (None, None, BOTH, {1: [FIRST], 2: BOTH, 3: BOTH}),
            (None, LAST, BOTH, {1: [LAST], 2: BOTH}),
            (one_core, None, BOTH, {1: [FIRST], 2: BOTH}),
            # the core's second processor
            (one_core, None, [LAST], {1: [LAST], 2: [LAST]}),
        )
    ):
        folder = write_topology(tmp_path / str(place), siblings, fastest)
        monkeypatch.setattr(cores, "TOPOLOGY", folder)

        def found(within: Any = within, pinned: Any = pinned) -> Any:
            os.sched_setaffinity(0, within)
            return cores.physical_cores(), {
                threads: cores.pinned_processors(threads) for threads in pinned
            }

        number = 2 if siblings is None else 1
        assert supervised(found, limits=LIMITS) == (min(number, cores.cpu_quota()), pinned)


@pytest.mark.parametrize(("before", "at_rest", "timed"), [(None, "passive", None), ("ACTIVE",) * 3])
def test_threads_sleep_but_for_a_timed_engine(monkeypatch, before, at_rest, timed) -> None:
    monkeypatch.delenv(cores.WAITING, raising=False)
    if before:
        monkeypatch.setenv(cores.WAITING, before)
    cores.let_threads_sleep()
    assert os.environ[cores.WAITING] == at_rest
    cores.let_threads_spin()
    assert os.environ.get(cores.WAITING) == timed
