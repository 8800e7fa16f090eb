"""Engines of known behaviour: requests are answered here, or in a child where that matters."""

import gc
import itertools
import json
import os
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from busy import PROCESSORS, WORK, hash_forever, hashing, wait
from energy_counter import Metered
from nvml_driver import printed_each
from played_streams import CALL, Program
from tightrope.jobs.child import Child
from tightrope.machine.interference import GpuState
from tightrope.measure import timed_engine
from tightrope.measure.timed_engine import FEWEST_CALLS, MOST_CALLS, TimedEngine
from tiny_model import LIMITS

ONE = PROCESSORS[-1]
LIMIT = 30.0
Run = Callable[[Any], Any]
SECONDS = 0.002


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


def test_calls_are_timed_each_and_the_collector_is_off_meanwhile() -> None:
    for seconds, calls, limit, fewest, most in (
        (0.0, 7, 10.0, 7, 7),
        (0.1, 1, 10.0, 1, 0.1 / SECONDS + 1),
        # the limit beats both, but one call is made
        (60.0, 10**6, 0.05, 1, 0.05 / SECONDS + 1),
        (1.0, 5, 0.0, 1, 1),
    ):
        began = time.perf_counter()
        samples = timed_engine.timed_calls(
            wait, SECONDS, seconds=seconds, calls=calls, limit_seconds=limit
        )
        elapsed = time.perf_counter() - began
        assert fewest <= len(samples) <= most
        assert elapsed >= min(seconds, limit)
        assert min(samples) >= SECONDS
        assert sum(samples) <= elapsed
    # it is left as it was, also when a call fails
    for fails in (False, True):
        seen = []

        def run(_: Any, fails: bool = fails, seen: list[bool] = seen) -> None:
            seen.append(gc.isenabled())
            assert not fails

        with pytest.raises(AssertionError) if fails else nullcontext():
            timed_engine.timed_calls(run, None, seconds=0.0, calls=3, limit_seconds=1.0)
        assert set(seen) == {False} and gc.isenabled()


def test_calls_count_in_the_block_in_which_they_end_and_those_outside_do_not() -> None:
    ends: list[float] = []

    def run(seconds: float) -> None:
        wait(seconds)
        ends.append(time.perf_counter())

    start = time.perf_counter() + 0.05
    found = timed_engine.closed_loop(run, 0.01, start=start, seconds=0.2, blocks=4)
    assert len(found) == 4
    inside = [end for end in ends if start <= end < start + 0.2]
    assert ends[0] < start and ends[-1] >= start + 0.2, "calls run before and after the window"
    # the first that ends in the window began before it
    assert sum(map(len, found)) == pytest.approx(len(inside) - 1, abs=1)
    # each call is timed from the end of the one before
    assert min(min(block) for block in found if block) >= 0.01
    assert sum(map(sum, found)) <= 0.2
    # a call longer than a block leaves blocks empty
    slow = timed_engine.closed_loop(wait, 0.03, start=time.perf_counter(), seconds=0.1, blocks=10)
    assert [] in slow and any(slow)


def test_each_stream_gets_its_next_call_when_its_last_one_has_ended() -> None:
    in_flight: list[int] = []

    class Noting(Program):
        def wait(self) -> float:
            in_flight.append(sum(program.queued for program in programs))
            return super().wait()

    programs = [Noting() for _ in range(4)]
    calls, seconds = timed_engine.timed_streams(programs, None, seconds=0.1, limit_seconds=5.0)
    assert seconds >= 0.1
    # before each wait but those that empty the queues at the end
    assert in_flight == [4] * (len(in_flight) - 4) + [4, 3, 2, 1]
    assert calls < len(in_flight) - 4, "filling the queues does not count"
    assert {(program.queued, program.most) for program in programs} == {(0, 1)}
    assert gc.isenabled()
    # calls slower than the limit are counted once
    calls, seconds = timed_engine.timed_streams([Program()], None, seconds=0.5, limit_seconds=0.001)
    assert calls == 1 and seconds >= CALL


def test_blocks_on_streams_release_their_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timed_engine, "BLOCK_SECONDS", 0.02)
    programs, checked = [Program(), Program()], []
    each = {"state": lambda: GpuState(throttled=[]), "limit_seconds": 30.0}
    found = timed_engine.blocks_on_streams(
        programs, "inputs", check=lambda outputs, inputs: checked.append(inputs), **each
    )
    assert checked == ["inputs"] * 2
    assert found.gpu == [GpuState(throttled=[])] * timed_engine.BLOCKS
    assert len(found.calls) == timed_engine.BLOCKS
    assert min(found.seconds) >= 0.02
    assert all(program.released for program in programs)
    # also where outputs are wrong
    programs = [Program(), Program()]
    with pytest.raises(ZeroDivisionError):
        timed_engine.blocks_on_streams(programs, None, check=lambda outputs, inputs: 1 / 0, **each)
    assert all(program.released for program in programs)
