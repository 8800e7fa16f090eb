import gc
from typing import Any

import pytest
from busy import PROCESSORS
from played_streams import CALL, Program
from tightrope.errors import WorkFailed
from tightrope.jobs.child import Child
from tightrope.measure.streams import BLOCK_SECONDS, BLOCKS, blocks_on_streams, timed_streams
from tightrope.measure.timed_engine import TimedEngine
from tiny_model import LIMITS


@pytest.mark.parametrize("count", [1, 2, 4])
def test_so_many_streams_have_so_many_calls_at_a_time_and_each_waits_for_its_last(
    count: int,
) -> None:
    programs = [Program() for _ in range(count)]
    calls, seconds = timed_streams(programs, None, seconds=0.2, limit_seconds=5.0)
    assert seconds >= 0.2
    assert 0.4 < calls / seconds * CALL / count <= 1.05
    assert {(program.queued, program.most) for program in programs} == {(0, 1)}
    assert gc.isenabled()


def test_calls_slower_than_the_limit_are_counted_once() -> None:
    calls, seconds = timed_streams([Program()], None, seconds=9.0, limit_seconds=0.001)
    assert calls == 1
    assert seconds >= CALL


def test_blocks_hold_calls_seconds_and_states_and_the_programs_are_released() -> None:
    programs, checked = [Program(), Program()], []
    found = blocks_on_streams(
        programs,
        "inputs",
        check=lambda outputs, inputs: checked.append(inputs),
        state=lambda: {"throttled": []},
        limit_seconds=30.0,
    )
    assert checked == ["inputs"] * 2
    assert found["gpu"] == [{"throttled": []}] * BLOCKS
    assert len(found["calls"]) == BLOCKS
    assert min(found["seconds"]) >= BLOCK_SECONDS
    assert all(program.released for program in programs)


def test_wrong_outputs_of_one_program_are_an_error_and_all_are_released() -> None:
    programs = [Program(), Program()]

    def check(outputs: Any, inputs: Any) -> None:
        raise WorkFailed("gives logits that are not numbers", transient=False)

    with pytest.raises(WorkFailed, match="not numbers"):
        blocks_on_streams(programs, None, check=check, state=lambda: None, limit_seconds=1.0)
    assert all(program.released for program in programs)


def test_an_engine_without_streams_has_no_such_blocks() -> None:
    engine = TimedEngine(lambda: (lambda inputs: None, {}), [None], PROCESSORS[:1])
    with Child(engine, LIMITS) as worker:
        worker.ask("load")
        assert worker.ask("streams", 0, 2, 5.0) is None
