import ctypes
import errno
import faulthandler
import multiprocessing
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from busy import ends
from mounts import mounted
from programs import started
from tightrope.artifacts.files import write_bytes
from tightrope.errors import ArtifactError, StorageError, TightropeError, WorkFailed
from tightrope.jobs import child
from tightrope.jobs.child import Child, Limits, beside, run_or_stop, spread, supervised
from tightrope.jobs.job import Section

ROOMY = Limits(memory_bytes=64e9, seconds=60)
TASKS = [0.1, 0.0, 0.05, 0.0]


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "POLL_SECONDS", 0.05)


def within(seconds: float) -> Limits:
    return Limits(memory_bytes=64e9, seconds=seconds)


def raises(error: BaseException) -> None:
    raise error


def segfaults() -> None:
    faulthandler.disable()  # its report would stand among pytest's own lines
    ctypes.string_at(0)


def killed(number: int) -> None:
    faulthandler.disable()
    os.kill(os.getpid(), number)


def fills_memory(size: int) -> None:
    kept = bytearray(b"x") * size
    time.sleep(30)
    del kept


def fails(work, *arguments, limits: Limits = ROOMY) -> WorkFailed:
    with pytest.raises(WorkFailed) as caught:
        supervised(work, *arguments, limits=limits)
    return caught.value


def test_a_child_keeps_its_state_and_its_temporary_folder_until_it_is_left() -> None:
    seen: list[int] = []
    with Child(lambda number: seen.append(number) or list(seen), ROOMY) as own:
        assert own.ask(1) == [1]
        assert own.ask(2) == [1, 2]
        pid = own.process.pid
    assert seen == []
    assert not psutil.pid_exists(pid)

    def make_two() -> list[str]:
        started = [sys.executable, "-c", "import tempfile; print(tempfile.mkdtemp())"]
        return [tempfile.mkdtemp(), subprocess.check_output(started, text=True).strip()]

    with Child(make_two, ROOMY) as own:
        made = [Path(one) for one in own.ask()]
        assert [one.is_dir() for one in made] == [True, True]
        assert Path(tempfile.gettempdir()) not in {one.parent for one in made}
    assert [one.exists() for one in made] == [False, False]


def test_an_exception_is_one_line_and_final_unless_there_may_be_room() -> None:
    for error, reason, transient in (
        (ValueError("first line\nsecond line"), "ValueError: first line", False),
        (RuntimeError("\n\n  indented  \n"), "RuntimeError: indented", False),
        (AssertionError(), "AssertionError: no message", False),
        (TightropeError("not yet"), "not yet", False),
        (WorkFailed("too slow", transient=False), "too slow", False),
        (OSError(errno.EIO, "broken device"), "OSError: [Errno 5] broken device", False),
        (ValueError("x" * 5000), f"ValueError: {'x' * 50}", False),
        (MemoryError(), "out of memory", True),
    ):
        failed = fails(lambda error=error: raises(error))
        assert (failed.reason[: len(reason)], failed.transient) == (reason, transient)
        assert len(failed.reason) < 400 and "\n" not in failed.reason


def fails_without_room(words: str) -> None:
    """A compiler that leaves its folder as it found it."""
    raise RuntimeError(words)


def fills_scratch(end: Callable[..., None], argument: object) -> None:
    faulthandler.disable()
    with suppress(OSError), Path(tempfile.gettempdir(), "file").open("wb") as stream:
        while True:
            stream.write(bytes(2**16))
    end(argument)


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """TMPDIR is a disk of 4 MiB of its own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with mounted(tmp_path, "-o", "size=4m"):
        yield tmp_path


@pytest.mark.parametrize(
    ("work", "arguments"),
    [
        (fails_without_room, ("compilation failed\ncc1: fatal error: No space left on device",)),
        (fills_scratch, (raises, ValueError("not a JSON document"))),
        (fills_scratch, (killed, signal.SIGBUS)),
        (fills_scratch, (raises, OSError(errno.ENOSPC, "No space left on device"))),
    ],
)
def test_a_full_scratch_disk_is_named_with_tmpdir(scratch: Path, work, arguments) -> None:
    with pytest.raises(StorageError) as caught:
        supervised(work, *arguments, limits=ROOMY)
    assert str(caught.value).startswith(f"{scratch} on {platform.node()}: temporary files cannot")
    assert "free space there, or set TMPDIR to a folder with more" in str(caught.value)


def test_a_child_that_ends_without_an_answer_is_transient() -> None:
    for work, arguments, reason in (
        (segfaults, (), "killed by SIGSEGV"),
        (killed, (signal.SIGKILL,), "killed by SIGKILL"),
        (os._exit, (3,), "ended with exit code 3 and no answer"),
        (lambda: lambda: None, (), "ended with exit code 1"),  # an answer that cannot be sent
    ):
        failed = fails(work, *arguments)
        assert failed.reason.startswith(reason)
        assert failed.transient


def test_time_and_memory_beyond_the_limit_are_transient() -> None:
    before = psutil.Process().children()  # what other tests started in this process
    failed = fails(time.sleep, 60, limits=within(0.2))
    assert failed.reason.startswith("killed after 0 s, the limit of this job; raise its runtime")
    assert failed.transient
    limit = psutil.Process().memory_info().rss + 50e6
    failed = fails(fills_memory, int(limit), limits=Limits(memory_bytes=limit, seconds=60))
    assert failed.reason.startswith(f"killed above {limit / 1e9:.1f} GB of memory")
    assert failed.transient
    # also where many short requests are answered within one look
    with (
        Child(lambda: None, within(0.2)) as own,
        pytest.raises(WorkFailed, match="killed after 0 s, the limit of this job"),
    ):
        for _ in range(10**6):
            own.ask()
    assert psutil.Process().children() == before, "no zombie is left"


def forks_sleepers(size: int, sleepers: int) -> int:
    """Fill memory that forked processes share, as the compile workers of PyTorch do."""
    kept = bytearray(b"x") * size
    fork = multiprocessing.get_context("fork")
    processes = [fork.Process(target=time.sleep, args=[60]) for _ in range(sleepers)]
    for one in processes:
        one.start()
    time.sleep(0.3)  # in which the limit is looked at
    for one in processes:
        one.kill()
    return len(kept)


def test_memory_that_forked_processes_share_counts_once() -> None:
    """Its sum of resident memory is five times what it holds, and the limit less than twice."""
    size = 400_000_000
    limits = Limits(memory_bytes=psutil.Process().memory_info().rss + 1.5 * size, seconds=60)
    assert supervised(forks_sleepers, size, 4, limits=limits) == size


def test_the_peak_of_memory_is_that_of_the_process_or_of_one_that_it_ran(repository: Path) -> None:
    size = 300_000_000
    takes = f"bytearray({size}).count(1)"
    runs = f"import subprocess, sys; subprocess.run([sys.executable, '-c', '{takes}'])"
    program = f"from tightrope.machine.processes import peak_rss_bytes as peak; {runs}; "
    # through a shell, because a process begins with the peak of the one that starts it, this one
    code = f"{program}one = peak(); {takes.replace(str(size), str(2 * size))}; print(one, peak())"
    words = ["sh", "-c", '"$@"; exit', "sh", sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(repository / "scripts")}
    done = subprocess.run(words, env=environment, check=True, capture_output=True)
    first, second = map(int, done.stdout.split())
    assert size < first < 2 * size < second < 3 * size


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_child_dies_with_its_parent(repository: Path, number: signal.Signals) -> None:
    program = (
        "import os, time\n"
        "from tightrope.jobs.child import Limits, supervised\n"
        "work = lambda: (print(os.getpid(), flush=True), time.sleep(60))\n"
        "supervised(work, limits=Limits(memory_bytes=1e9, seconds=60))\n"
    )
    with started(repository, "-c", program, stdout=subprocess.PIPE) as parent:
        own = int(parent.stdout.readline())
        parent.send_signal(number)
        parent.wait()
    assert ends(own)


def test_a_failure_of_a_step_that_a_model_needs_is_one_line() -> None:
    assert run_or_stop("a.csv", int, "3", limits=ROOMY) == 3
    with pytest.raises(ArtifactError, match=r"^a.json: truncated$"):
        run_or_stop("a.csv", raises, ArtifactError("a.json: truncated"), limits=ROOMY)
    with pytest.raises(TightropeError, match=r"^a\.csv: ValueError: no such row$"):
        run_or_stop("a.csv", raises, ValueError("no such row"), limits=ROOMY)


def limits_of(mem_mb: int = 1000, runtime: int = 10) -> Limits:
    """Those of a job with these resources."""
    resources = SimpleNamespace(mem_mb=mem_mb, runtime=runtime, last_attempt=0)
    job = SimpleNamespace(resources=resources, output=Section(record="reports/a.json"))
    return Limits.of(job)


@pytest.mark.parametrize(
    ("mem_mb", "runtime", "memory_mb", "seconds"),
    [(1000, 10, 550, 540), (16000, 240, 14400, 14280), (50, 1, 25, 54)],
)
def test_limits_leave_room_for_snakemake(mem_mb, runtime, memory_mb, seconds) -> None:
    limits = limits_of(mem_mb, runtime)
    found = (limits.memory_bytes, limits.seconds)
    assert found == pytest.approx((memory_mb * 1e6, seconds))
    assert (limits.last_attempt, limits.ended) == (False, None)


@contextmanager
def snakemake_of(job: str, seconds: float) -> Iterator[None]:
    """A process that looks like Snakemake at work in that job of Slurm, of that age."""
    words = [sys.executable, "-c", "import time; time.sleep(60)", "--mode", "remote"]
    with subprocess.Popen(words, env={**os.environ, "SLURM_JOB_ID": job}) as process:
        time.sleep(seconds)
        yield
        process.kill()


def test_the_time_of_a_slurm_job_counts_from_its_start_whatever_its_clock(monkeypatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    # in an allocation in which Snakemake runs its jobs itself
    with snakemake_of("4712", 0.1):
        assert limits_of().seconds == 540
    with snakemake_of("4711", 0.5):
        for hours in (-1, 1):
            monkeypatch.setenv("SLURM_JOB_START_TIME", str(int(time.time()) + 3600 * hours))
            assert 510 < limits_of().seconds < 539.6


def starts_a_sleeper(pipe: int) -> None:
    os.write(pipe, f"{subprocess.Popen(['sleep', '600']).pid}\n".encode())
    time.sleep(600)


def test_what_the_child_has_started_is_killed_with_it() -> None:
    read, write = os.pipe()
    assert "killed after 0 s" in fails(starts_a_sleeper, write, limits=within(0.4)).reason
    assert ends(int(os.read(read, 100)))


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
