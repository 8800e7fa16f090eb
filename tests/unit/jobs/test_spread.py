"""Work spread over processes: its order, its errors and its end."""

import os
import signal
import time
from functools import partial

import psutil
import pytest
from busy import ends
from programs import started
from tightrope.artifacts.files import write_bytes
from tightrope.errors import ArtifactError
from tightrope.jobs.child import beside, spread

TASKS = [0.1, 0.0, 0.05, 0.0]


def process_after(seconds: float) -> tuple[float, int]:
    time.sleep(seconds)
    return seconds, os.getpid()


def refused(task: int) -> int:
    if task == 1:
        raise ArtifactError("a.json: truncated")
    return task


@pytest.mark.parametrize("processes", [1, 9])
def test_answers_come_in_the_order_of_the_tasks(processes: int) -> None:
    found = list(spread(process_after, TASKS, processes=processes))
    assert [seconds for seconds, _ in found] == TASKS
    assert (os.getpid() in {process for _, process in found}) is (processes < 2)
    # a single task needs no other process
    assert list(spread(process_after, [0.0], processes=processes)) == [(0.0, os.getpid())]


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_is_that_of_the_first_task_that_fails(processes: int) -> None:
    answers = spread(refused, [0, 1, 2, 1], processes=processes)
    assert next(answers) == 0
    with pytest.raises(ArtifactError, match=r"^a\.json: truncated$"):
        next(answers)


def test_the_processes_end_with_the_one_that_began_them_also_where_that_is_killed(repository):
    program = (
        "import time\n"
        "from tightrope.jobs.child import spread\n"
        "list(spread(time.sleep, [60.0] * 4, processes=2))"
    )
    with started(repository, "-c", program) as parent:
        began = psutil.Process(parent.pid)
        deadline = time.monotonic() + 60
        while len(began.children()) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        children = began.children()
        parent.send_signal(signal.SIGKILL)
    assert all(ends(one.pid) for one in children)


@pytest.mark.parametrize("processes", [1, 2])
def test_work_beside_a_block_is_done_at_its_end_or_fails_there(tmp_path, processes) -> None:
    with beside(partial(write_bytes, tmp_path / "beside", b"1"), processes=processes):
        write_bytes(tmp_path / "block", b"2")
    assert {path.name for path in tmp_path.iterdir()} == {"beside", "block"}
    work = partial(write_bytes, tmp_path / "block" / "below", b"1")
    with pytest.raises(NotADirectoryError), beside(work, processes=processes):
        pass
    # work that is killed is an error and no wait
    with pytest.raises(ChildProcessError), beside(partial(os._exit, 9), processes=2):
        pass
