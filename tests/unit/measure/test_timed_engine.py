"""Engines of known behaviour: requests are answered here, or in a child where that matters."""

import itertools
import json
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from busy import PROCESSORS, WORK, hash_forever, hashing, wait
from energy_counter import Metered
from nvml_driver import printed_each
from tightrope.jobs.child import Child
from tightrope.measure import timed_engine
from tightrope.measure.timed_engine import FEWEST_CALLS, MOST_CALLS, TimedEngine
from tiny_model import LIMITS

ONE = PROCESSORS[-1]
LIMIT = 30.0
Run = Callable[[Any], Any]


class Counting(TimedEngine):
    """A loaded engine on two inputs that counts its calls."""

    def __init__(self, run: Run, inputs: Any = None, check: Any = None) -> None:
        super().__init__(lambda: (run, {}), [inputs, inputs], [ONE], check)
        self.calls = 0

        def counted(inputs: Any) -> Any:
            self.calls += 1
            return run(inputs)

        self.run = counted


def takes(*seconds: float) -> Run:
    """An engine whose calls take these seconds in turn, the last of them for ever after."""
    remaining = itertools.chain(seconds[:-1], itertools.repeat(seconds[-1]))
    return lambda _: wait(next(remaining))


def test_a_process_and_its_threads_are_pinned_before_the_engine_is_loaded() -> None:
    class Asking(TimedEngine):
        def affinities(self) -> set[tuple[int, ...]]:
            tasks = Path("/proc/self/task").iterdir()
            return {tuple(sorted(os.sched_getaffinity(int(task.name)))) for task in tasks}

    def load() -> tuple[Run, dict[str, Any]]:
        hash_forever()
        return hashing(2), {"processors": sorted(os.sched_getaffinity(0))}

    with Child(Asking(load, [WORK], [ONE]), LIMITS) as worker:
        assert worker.ask("load") == {"processors": [ONE]}
        worker.ask("block", 0, 0.0, 1, LIMIT)
        assert worker.ask("affinities") == {(ONE,)}
    assert sorted(os.sched_getaffinity(0)) == PROCESSORS


def test_the_first_call_is_one_and_a_fixed_warm_up_exactly_so_many() -> None:
    checked: list[float] = []
    engine = Counting(
        takes(0.02), check=lambda outputs, inputs: checked.append(time.perf_counter())
    )
    began = time.perf_counter()
    first = engine.first_call(0)
    assert engine.calls == len(checked) == 1
    assert 0.02 <= first <= checked[0] - began
    for calls in (0, 17):
        engine = Counting(takes(0.001))
        warmup = engine.warm_up(0, calls, LIMIT, 0.01)
        assert (warmup.calls, warmup.stable) == (engine.calls, None) == (calls, None)
    slow = Counting(takes(0.02)).warm_up(0, 10**6, 0.1, 0.01)
    assert slow.calls <= 0.1 / 0.02 + 1
    assert slow.seconds >= 0.1


def test_warm_up_goes_on_until_two_windows_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """The samples of the windows are planted."""

    def warmed_up(first: float, *windows: list[float], limit: float = LIMIT) -> Any:
        left = iter(windows)

        def planted(*_: Any, seconds: float, **options: Any) -> list[float]:
            time.sleep(seconds if limit < LIMIT else 0.0)
            return next(left)

        monkeypatch.setattr(timed_engine, "timed_calls", planted)
        engine = Counting(takes(0.0))
        engine.first_s[0] = first
        return engine.warm_up(0, None, limit, 0.02)

    found = warmed_up(0.001, [0.4], [0.2], [0.1], [0.01] * 9, [0.0104] * 9)
    assert (found.calls, found.stable) == (21, True)
    assert warmed_up(0.001, [0.01], [0.0106], [0.0105]).calls == 3, "within 5 %"
    assert warmed_up(0.1, [0.1]).calls == 1, "a first call longer than a window is one"
    found = warmed_up(0.001, *[[0.01], [0.02]] * 1000, limit=0.1)
    assert not found.stable and found.seconds >= 0.1


def test_a_block_has_at_least_its_calls_and_seconds() -> None:
    for seconds, calls in ((0.05, 1), (0.0, 12), (0.02, 5)):
        engine = Counting(takes(0.001))
        engine.warm_up(0, 5, LIMIT, 0.01)
        block = engine.block(0, seconds, calls, LIMIT)
        samples = block.samples_s
        assert len(samples) >= calls
        assert seconds <= block.seconds >= sum(samples)
        assert min(samples) >= 0.001
        # a lead-in is not in its samples, and there is none without a minimum of time
        lead_in = engine.calls - 5 - len(samples)
        assert lead_in >= 1 if seconds else (lead_in, len(samples)) == (0, calls)
    assert len(Counting(takes(0.01)).block(0, 10**6, 10**6, 0.1).samples_s) <= 0.1 / 0.01 + 1
    # calls longer than a block need no lead-in, which is known for each of the inputs
    engine = Counting(takes(0.03))
    engine.warm_up(0, 3, LIMIT, 0.01)
    made = len(engine.block(0, 0.01, 4, LIMIT).samples_s)
    assert engine.calls == 3 + made
    other = len(engine.block(1, 0.01, 2, LIMIT).samples_s)
    assert engine.calls == 3 + made + 1 + other


def test_busy_threads_are_counted_anew_and_a_gpu_is_timed_there_too() -> None:
    engine = Counting(takes(0.0))
    engine.used, engine.timed_s = Counter({1: 1.0, 2: 0.25, 3: 0.15}), 2.0
    assert engine.threads() == {"busy": 2, "cores": 0.7}
    assert engine.threads() == {"busy": 0, "cores": 0}

    class OnGpu:
        def device_seconds(self, inputs: Any, calls: int) -> list[float]:
            return [5e-4] * calls

    engine = Counting(takes(0.0))
    assert engine.device(0) is None, "on a CPU there is no other clock"
    engine.run = OnGpu()  # type: ignore[assignment]
    for typical_s, calls in ((0.0, MOST_CALLS), (0.001, 200), (9.0, FEWEST_CALLS)):
        engine.typical_s[0] = typical_s
        assert len(engine.device(0) or ()) == calls


def test_processor_time_out_of_turn_is_counted_and_sleep_is_none() -> None:
    engine = Counting(takes(0.001))
    assert engine.block(0, 0.0, 1, LIMIT).idle_s == 0
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
    assert engine.block(0, 0.0, 1, LIMIT).idle_s >= 0.1
    time.sleep(0.3)
    assert 0 <= engine.block(0, 0.0, 1, LIMIT).idle_s < 0.1
    # between two shapes lie the first call and the warm-up of the next
    engine.threads()
    engine.first_call(1)
    assert engine.block(1, 0.0, 1, LIMIT).idle_s == 0


def test_a_long_block_ends_at_its_limit_and_is_not_counted(tmp_path: Path) -> None:
    engine = Metered(lambda _: wait(0.001), tmp_path / "zones", [ONE], 0.5)
    with Child(engine, LIMITS) as worker:
        worker.ask("load")
        assert worker.ask("block", 0, 0.001, 1, LIMIT).energy_j is None, "it is too short"
        worker.ask("threads")
        found = worker.ask("long_block", 0, LIMIT)
        assert found.energy_j == pytest.approx(found.calls)
        assert found.calls <= 0.5 / 0.001 + 1
        assert worker.ask("long_block", 0, 0.05).energy_j is None
        assert worker.ask("threads") == {"busy": 0, "cores": 0}
        assert worker.ask("block", 0, 0.01, 1, LIMIT).idle_s == 0


ON_GPU = """
import json, os, time
from msgspec import to_builtins
from tightrope.jobs.child import Child, Limits
from tightrope.machine.host import describe_host
from tightrope.measure.timed_engine import TimedEngine
describe_host()  # as each job does before it starts its workers
engine = TimedEngine(lambda: (time.sleep, {}), [0.001], [PROCESSOR], device="cuda")
with Child(engine, Limits(1e10, 60.0)) as worker:
    worker.ask("load")
    block = worker.ask("block", 0, 0.02, 1, 30.0)
    long = None if "FAKE_SHARED" in os.environ else worker.ask("long_block", 0, 30.0)
print(json.dumps(to_builtins([block.energy_j, block.gpu, long])))
""".replace("PROCESSOR", str(ONE))


def test_on_a_gpu_each_block_has_its_state_and_a_long_one_energy(driver: Path) -> None:
    """In a worker of a process that has asked NVML before, of a driver library of the test."""
    cases = [{"FAKE_LIMITS": "4"}, {"FAKE_SHARED": "1"}, {"FAKE_NO_DRIVER": "1"}]
    found, shared, none = map(json.loads, printed_each(ON_GPU, driver, cases))
    energy, state, long = found
    assert energy is None
    assert (state["sm_clock_mhz"], state["throttled"]) == (1980, ["power cap"])
    assert (state["other_processes"], state["memory_bytes"]) == (0, 3 << 30)
    assert long["gpu"] == state
    assert long["energy_j"] == 1.5
    assert 1 < long["calls"] <= 1001
    assert shared[1]["other_processes"] == 1
    assert none == [None, None, None]
