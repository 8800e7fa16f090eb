"""Engines of known behaviour in real child processes."""

import itertools
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from busy import PROCESSORS, WORK, hash_forever, hashing, wait
from energy_counter import Metered
from nvml_driver import build_driver, printed
from tightrope.errors import WorkFailed
from tightrope.jobs.child import Child
from tightrope.measure.logits import check_logits
from tightrope.measure.timed_engine import TimedEngine, stable
from tiny_model import LIMITS

ONE = PROCESSORS[-1]
TOKENS = {"input_ids": np.zeros((2, 8), np.int64)}
LOAD = {"import_s": 0.25, "load_s": 0.5}
LIMIT = 30.0
Run = Callable[[Any], Any]


class Counting(TimedEngine):
    """A timed engine that says how often it was called and where its threads may run."""

    def __init__(self, run: Run, inputs: Any, processors: list[int], check: Any) -> None:
        super().__init__(lambda: (self.counted, LOAD), [inputs, inputs], processors, check)
        self.work = run
        self.calls = 0

    def counted(self, inputs: Any) -> Any:
        self.calls += 1
        return self.work(inputs)

    def count(self) -> int:
        return self.calls

    def cpu_seconds(self) -> float:
        return time.process_time()

    def affinities(self) -> list[list[int]]:
        tasks = Path("/proc/self/task").iterdir()
        return [sorted(os.sched_getaffinity(int(task.name))) for task in tasks]


class GoesCold(Counting):
    """Its first call in each block takes 50 ms, every other call 1 ms."""

    cold = False

    def __call__(self, request: str, *arguments: Any) -> Any:
        self.cold = request == "block"
        return super().__call__(request, *arguments)

    def counted(self, inputs: Any) -> Any:
        wait(0.05 if self.cold else 0.001)
        self.cold = False
        return super().counted(inputs)


@contextmanager
def loaded(
    run: Run,
    inputs: Any = None,
    *,
    processors: tuple[int, ...] = (ONE,),
    check: Any = None,
    kind: type[Counting] = Counting,
) -> Iterator[Child]:
    with Child(kind(run, inputs, list(processors), check), LIMITS) as worker:
        worker.ask("load")
        yield worker


def takes(*seconds: float) -> Run:
    """An engine whose calls take these seconds in turn, the last of them for ever after."""
    remaining = itertools.chain(seconds[:-1], itertools.repeat(seconds[-1]))
    return lambda _: wait(next(remaining))


def spinning(_: Any) -> None:
    """An engine with a thread that never stops."""
    hash_forever()
    wait(0.001)


def answering(logits: Any) -> Run:
    return lambda _: logits


def test_the_process_is_pinned_before_the_engine_is_loaded() -> None:
    def load() -> tuple[Run, dict[str, float]]:
        hash_forever()
        return takes(0.001), {"processors": sorted(os.sched_getaffinity(0))}

    with Child(TimedEngine(load, [None], [ONE]), LIMITS) as worker:
        assert worker.ask("load") == {"processors": [ONE]}
    assert sorted(os.sched_getaffinity(0)) == PROCESSORS


@pytest.mark.parametrize("processors", [(ONE,), tuple(PROCESSORS)], ids=["one", "all"])
def test_all_threads_run_on_the_given_processors_and_on_no_other(
    processors: tuple[int, ...],
) -> None:
    with loaded(hashing(2), WORK, processors=processors) as worker:
        worker.ask("block", 0, 0.01, 1, LIMIT)
        affinities = worker.ask("affinities")
    assert len(affinities) >= 3
    assert affinities == [list(processors)] * len(affinities)


def test_load_gives_what_the_loader_says() -> None:
    with Child(Counting(takes(0.001), None, [ONE], None), LIMITS) as worker:
        assert worker.ask("load") == LOAD
        assert worker.ask("count") == 0


def test_the_first_call_is_one_call_and_its_time() -> None:
    with loaded(takes(0.1, 0.001)) as worker:
        first = worker.ask("first_call", 0)
        assert worker.ask("count") == 1
    assert 0.1 <= first < 1


def test_right_outputs_of_the_first_call_pass() -> None:
    check = partial(check_logits, classes=3)
    with loaded(answering(np.zeros((2, 3))), TOKENS, check=check) as worker:
        assert worker.ask("first_call", 0) >= 0


@pytest.mark.parametrize(
    ("logits", "reason"),
    [
        (np.full((2, 3), np.nan), "gives logits that are not numbers"),
        (np.array([[0, 1, 2], [0, 1, -np.inf]]), "gives logits that are not numbers"),
        (np.zeros((2, 4)), "gives outputs of shape [2, 4] in the place of [2, 3]"),
        (np.zeros((1, 3)), "gives outputs of shape [1, 3] in the place of [2, 3]"),
    ],
    ids=["nan", "infinite", "classes", "batch"],
)
def test_wrong_outputs_of_the_first_call_fail(logits: Any, reason: str) -> None:
    check = partial(check_logits, classes=3)
    with (
        loaded(answering(logits), TOKENS, check=check) as worker,
        pytest.raises(WorkFailed) as caught,
    ):
        worker.ask("first_call", 0)
    assert (caught.value.reason, caught.value.transient) == (reason, False)


def test_the_check_takes_no_part_in_the_time_of_the_first_call() -> None:
    with loaded(takes(0.001), check=lambda *_: wait(0.5)) as worker:
        assert worker.ask("first_call", 0) < 0.5


@pytest.mark.parametrize("calls", [0, 1, 17])
def test_a_fixed_warm_up_is_exactly_so_many_calls(calls: int) -> None:
    with loaded(takes(0.001)) as worker:
        warmup = worker.ask("warm_up", 0, calls, LIMIT, 0.01)
        made = worker.ask("count")
    assert (warmup["calls"], warmup["stable"]) == (made, None)
    assert made == calls


def test_a_fixed_warm_up_ends_at_its_time_limit() -> None:
    with loaded(takes(0.02)) as worker:
        warmup = worker.ask("warm_up", 0, 10**6, 0.2, 0.01)
    assert warmup["calls"] < 15
    assert 0.2 <= warmup["seconds"] < 2


def test_warm_up_goes_on_until_two_windows_agree() -> None:
    cold = [0.4, 0.2, 0.1]
    with loaded(takes(*cold, 0.01)) as worker:
        warmup = worker.ask("warm_up", 0, None, LIMIT, 0.005)
    assert warmup["stable"]
    assert warmup["calls"] >= len(cold) + 2
    assert sum(cold) < warmup["seconds"] < LIMIT


@pytest.mark.parametrize(("window", "calls"), [(0.01, 1), (1.0, None)])
def test_a_first_call_longer_than_a_window_is_one(window: float, calls: int | None) -> None:
    with loaded(takes(0.1)) as worker:
        worker.ask("first_call", 0)
        warmup = worker.ask("warm_up", 0, None, LIMIT, window)
    assert warmup["stable"]
    assert warmup["calls"] == 1 if calls else warmup["calls"] > 9


def test_warm_up_that_never_gets_stable_ends_at_its_time() -> None:
    seconds = itertools.cycle([0.05, 0.15])
    with loaded(lambda _: wait(next(seconds))) as worker:
        warmup = worker.ask("warm_up", 0, None, 0.4, 0.001)
    assert 0.4 <= warmup["seconds"] < 2
    assert warmup["calls"] > 2


def test_warm_up_ends_at_its_time_also_within_a_window() -> None:
    with loaded(takes(0.001)) as worker:
        assert worker.ask("warm_up", 0, None, 0.1, 2.0)["seconds"] < 1


@pytest.mark.parametrize(
    ("medians", "expected"),
    [
        ([], False),
        ([1.0], False),
        ([1.0, 1.04], True),
        ([1.0, 0.96], True),
        ([1.0, 1.06], False),
        ([1.0, 1.0, 2.0], False),
    ],
)
def test_stable_are_two_medians_within_five_percent(medians: list[float], expected: bool) -> None:
    assert stable(medians) is expected


@pytest.mark.parametrize(("seconds", "calls"), [(0.1, 1), (0.0, 30), (0.05, 5)])
def test_a_block_has_at_least_its_calls_and_seconds(seconds: float, calls: int) -> None:
    with loaded(takes(0.001)) as worker:
        block = worker.ask("block", 0, seconds, calls, LIMIT)
    assert len(block["samples_s"]) >= calls
    assert sum(block["samples_s"]) >= 0.9 * seconds
    assert sum(block["samples_s"]) <= block["seconds"]
    assert min(block["samples_s"]) >= 0.001


def test_a_block_without_seconds_has_exactly_its_calls() -> None:
    with loaded(takes(0.001)) as worker:
        worker.ask("warm_up", 0, 5, LIMIT, 0.01)
        block = worker.ask("block", 0, 0.0, 12, LIMIT)
        assert worker.ask("count") == 5 + 12
    assert len(block["samples_s"]) == 12


def test_a_block_ends_at_its_limit() -> None:
    with loaded(takes(0.01)) as worker:
        block = worker.ask("block", 0, 10**6, 10**6, 0.2)
    assert 0.2 <= block["seconds"] < 2


def test_the_lead_in_of_a_block_is_not_in_its_samples() -> None:
    with loaded(answering(None), kind=GoesCold) as worker:
        worker.ask("warm_up", 0, 10, LIMIT, 0.02)
        for _ in range(3):
            before = worker.ask("count")
            block = worker.ask("block", 0, 0.1, 1, LIMIT)
            assert len(block["samples_s"]) < worker.ask("count") - before
            assert max(block["samples_s"]) < 0.05


def test_calls_that_are_longer_than_a_block_need_no_lead_in() -> None:
    with loaded(takes(0.03)) as worker:
        worker.ask("warm_up", 0, 3, LIMIT, 0.01)
        block = worker.ask("block", 0, 0.01, 4, LIMIT)
        assert worker.ask("count") == 3 + len(block["samples_s"])


def test_how_long_a_call_takes_is_known_for_each_inputs_apart() -> None:
    with loaded(takes(0.03)) as worker:
        worker.ask("warm_up", 0, 3, LIMIT, 0.01)
        before = worker.ask("count")
        block = worker.ask("block", 1, 0.01, 2, LIMIT)
        assert worker.ask("count") - before == len(block["samples_s"]) + 1


def test_one_thread_that_works_is_one_busy_thread() -> None:
    with loaded(takes(0.005)) as worker:
        worker.ask("block", 0, 0.3, 1, LIMIT)
        threads = worker.ask("threads")
    assert threads["busy"] == 1
    assert 0.1 < threads["cores"] < 1.1


def test_two_threads_of_native_work_are_two_busy_threads() -> None:
    with loaded(hashing(2), WORK, processors=tuple(PROCESSORS[-2:])) as worker:
        worker.ask("block", 0, 0.5, 1, LIMIT)
        assert worker.ask("threads")["busy"] == 2


@pytest.mark.parametrize("run", [takes(0.005), hashing(2)], ids=["one", "two"])
def test_cores_are_the_processor_time_of_all_threads_over_wall_time(run: Run) -> None:
    with loaded(run, WORK, processors=tuple(PROCESSORS[-2:])) as worker:
        began = worker.ask("cpu_seconds")
        block = worker.ask("block", 0, 0.0, 60, LIMIT)
        used = worker.ask("cpu_seconds") - began
        assert worker.ask("threads")["cores"] == pytest.approx(used / block["seconds"], rel=0.2)


def test_two_threads_on_one_processor_have_one_core() -> None:
    with loaded(hashing(2), WORK) as worker:
        worker.ask("block", 0, 0.3, 1, LIMIT)
        assert worker.ask("threads")["cores"] < 1.1


def test_a_thread_that_works_little_is_not_busy() -> None:
    with loaded(lambda _: time.sleep(0.01)) as worker:
        worker.ask("block", 0, 0.3, 1, LIMIT)
        threads = worker.ask("threads")
    assert threads["busy"] == 0
    assert threads["cores"] < 0.1


def test_threads_are_counted_anew_after_each_answer() -> None:
    with loaded(takes(0.005)) as worker:
        worker.ask("block", 0, 0.1, 1, LIMIT)
        assert worker.ask("threads")["busy"] == 1
        assert worker.ask("threads") == {"busy": 0, "cores": 0}
        worker.ask("block", 1, 0.1, 1, LIMIT)
        assert worker.ask("threads")["busy"] == 1


def test_peak_memory_is_the_highest_so_far() -> None:
    size = 300 << 20

    def run(_: Any) -> None:
        bytearray(b"x") * size  # written and let go of

    with loaded(run) as worker:
        before = worker.ask("peak_rss_bytes")
        worker.ask("first_call", 0)
        after = worker.ask("peak_rss_bytes")
    assert before > 1e6
    assert 0.8 * size < after - before < 1.5 * size


def idle_seconds(run: Run, pause: float = 0.5) -> list[float]:
    """What two blocks say of the time before them; `pause` seconds lie between the two."""
    with loaded(run, processors=tuple(PROCESSORS)) as worker:
        first = worker.ask("block", 0, 0.01, 1, LIMIT)
        time.sleep(pause)
        return [first["idle_s"], worker.ask("block", 0, 0.01, 1, LIMIT)["idle_s"]]


def test_an_engine_that_sleeps_out_of_turn_uses_no_processor() -> None:
    first, second = idle_seconds(takes(0.001))
    assert first == 0
    assert 0 <= second < 0.05


def test_processor_time_out_of_turn_is_counted() -> None:
    first, second = idle_seconds(spinning)
    assert first == 0
    assert second > 0.1


def test_the_first_block_of_a_shape_has_no_time_out_of_turn() -> None:
    """Between two shapes lie the first call and the warm-up of the next."""
    with loaded(takes(0.01)) as worker:
        worker.ask("block", 0, 0.01, 1, LIMIT)
        worker.ask("threads")
        worker.ask("first_call", 1)
        worker.ask("warm_up", 1, 20, LIMIT, 0.01)
        assert worker.ask("block", 1, 0.01, 1, LIMIT)["idle_s"] == 0


def test_a_worker_answers_when_its_threads_sleep_or_soon_after() -> None:
    began = time.monotonic()
    with loaded(spinning, processors=tuple(PROCESSORS)) as worker:
        worker.ask("block", 0, 0.0, 1, LIMIT)
    assert time.monotonic() - began < 5


class OnGpu:
    """Calls of 1 ms, and a clock that says which calls it was asked for."""

    def __call__(self, inputs: Any) -> Any:
        wait(0.001)

    def device_seconds(self, inputs: Any, calls: int) -> list[float]:
        return [5e-4] * calls


def test_an_engine_on_a_gpu_is_timed_there_too_for_a_fifth_of_a_second() -> None:
    engine = TimedEngine(lambda: (OnGpu(), LOAD), [TOKENS], PROCESSORS)
    with Child(engine, LIMITS) as child:
        child.ask("load")
        child.ask("warm_up", 0, 9, LIMIT, 0.01)
        assert 60 <= len(child.ask("device", 0)) <= 200


def test_an_engine_on_the_cpu_has_no_other_clock() -> None:
    engine = TimedEngine(lambda: (wait, LOAD), [0.001], PROCESSORS)
    with Child(engine, LIMITS) as child:
        child.ask("load")
        assert child.ask("device", 0) is None


@contextmanager
def metered(folder: Path, shortest_s: float) -> Iterator[Child]:
    with Child(Metered(lambda _: wait(0.001), folder, [ONE], shortest_s), LIMITS) as worker:
        worker.ask("load")
        worker.ask("warm_up", 0, 5, LIMIT, 0.01)
        yield worker


def test_the_energy_of_a_block_is_that_of_its_calls_without_the_lead_in(tmp_path: Path) -> None:
    with metered(tmp_path / "zones", 0.0) as worker:
        for _ in range(3):
            block = worker.ask("block", 0, 0.05, 1, LIMIT)
            assert block["energy_j"] == pytest.approx(len(block["samples_s"]))
            assert block["gpu"] is None
        assert worker.ask("long_block", 0, LIMIT) is None


def test_a_counter_that_changes_seldom_shows_the_energy_of_a_long_block_alone(
    tmp_path: Path,
) -> None:
    with metered(tmp_path / "zones", 0.2) as worker:
        assert worker.ask("block", 0, 0.05, 1, LIMIT)["energy_j"] is None
        found = worker.ask("long_block", 0, LIMIT)
        assert found["energy_j"] == pytest.approx(found["calls"])
        assert 20 < found["calls"] <= 200
        assert found["gpu"] is None
        assert worker.ask("long_block", 0, 0.05)["energy_j"] is None, "ended by its limit"


def test_a_long_block_is_in_no_count_of_time_and_threads(tmp_path: Path) -> None:
    with metered(tmp_path / "zones", 0.1) as worker:
        worker.ask("threads")
        worker.ask("long_block", 0, LIMIT)
        assert worker.ask("threads") == {"busy": 0, "cores": 0}
        assert worker.ask("block", 0, 0.01, 1, LIMIT)["idle_s"] == 0


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_without_counters_and_gpu_a_block_has_neither(device: str) -> None:
    if Path("/sys/class/powercap/intel-rapl:0").exists() or Path("/proc/driver/nvidia").exists():
        pytest.skip("this machine has a counter of energy or a GPU")
    with Child(TimedEngine(lambda: (wait, LOAD), [0.001], [ONE], device=device), LIMITS) as child:
        child.ask("load")
        block = child.ask("block", 0, 0.01, 1, LIMIT)
        assert (block["energy_j"], block["gpu"]) == (None, None)
        assert child.ask("long_block", 0, LIMIT) is None


ON_GPU = """
import json, time
from tightrope.jobs.child import Child, Limits
from tightrope.machine.host import describe_host
from tightrope.measure.timed_engine import TimedEngine
describe_host()  # as each job does before it starts its workers
engine = TimedEngine(lambda: (time.sleep, {}), [0.001], [PROCESSOR], device="cuda")
with Child(engine, Limits(1e10, 60.0)) as worker:
    worker.ask("load")
    block, long = worker.ask("block", 0, 0.02, 1, 30.0), worker.ask("long_block", 0, 30.0)
print(json.dumps([block["energy_j"], block["gpu"], long]))
""".replace("PROCESSOR", str(ONE))


def test_on_a_gpu_each_block_ends_with_its_state_and_a_long_block_has_the_energy(
    tmp_path: Path,
) -> None:
    """In a worker of a process that has asked NVML before, of a driver library of the test."""
    build_driver(tmp_path)
    energy, state, long = json.loads(printed(ON_GPU, tmp_path, FAKE_LIMITS="4"))
    assert energy is None
    assert (state["sm_clock_mhz"], state["throttled"]) == (1980, ["power cap"])
    assert (state["other_processes"], state["memory_bytes"]) == (0, 3 << 30)
    assert long["gpu"] == state
    assert long["energy_j"] == 1.5
    assert 100 < long["calls"] <= 1000
    shared = json.loads(printed(ON_GPU, tmp_path, FAKE_SHARED="1"))
    assert shared[1]["other_processes"] == 1
    assert json.loads(printed(ON_GPU, tmp_path, FAKE_NO_DRIVER="1")) == [None, None, None]
