"""Jobs of a killed run that still work in a folder are found, and a new run waits or is refused."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tightrope.errors import TightropeError
from tightrope.jobs.job_lock import JOBS_LOCK, hold_job_lock
from tightrope.plan import orphans
from tightrope.plan.orphans import require_no_jobs, require_no_slurm_jobs, take_folder
from tightrope.plan.slurm_queue import jobs_of, queued_jobs, require_slurm

JOB = """
import os, sys, time
from tightrope.jobs.job import current_job
current_job(globals())
child = os.fork() if "with-child" in sys.argv else -1
if child:
    print("at work", child, flush=True)
time.sleep(60)
"""
UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
Start = Callable[..., tuple[subprocess.Popen[str], int]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of Snakemake, as working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".snakemake").mkdir()
    return tmp_path


@pytest.fixture
def start(repository: Path, folder: Path) -> Iterator[Start]:
    """Starts a job; returns it, and the id of its child, when it is at work."""
    started = []

    def run(*words: str) -> tuple[subprocess.Popen[str], int]:
        (folder / "job.py").write_text(JOB)
        environment = {**os.environ, "PYTHONPATH": str(repository / "scripts")}
        command = [sys.executable, "job.py", *(f"params.{word}=1" for word in words), *words]
        pipe = {"stdout": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen(command, env=environment, **pipe))
        return started[-1], int(started[-1].stdout.readline().split()[-1])

    yield run
    for one in started:
        one.kill()
        one.stdout.close()
        one.wait()


def refusal(**settings: float) -> str:
    with pytest.raises(TightropeError) as raised:
        require_no_jobs(**settings)
    assert str(raised.value).isprintable()
    return str(raised.value)


def test_jobs_at_work_are_named_with_what_ends_them(start: Start, folder: Path) -> None:
    jobs = [start()[0].pid, start()[0].pid]
    ids = " ".join(map(str, sorted(jobs)))
    assert refusal(seconds=0) == (
        f"{folder}: jobs of an earlier run still work in this folder: processes {ids}; wait until "
        f"they have ended, or end them with: kill {ids}. Nothing was changed"
    )


def test_a_refused_run_gives_the_lease_back(
    start: Start, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, _ = start()
    monkeypatch.setattr(orphans.require_no_jobs, "__kwdefaults__", {"seconds": 0})
    with pytest.raises(TightropeError, match="jobs of an earlier run"):
        take_folder()
    assert (folder / ".snakemake/run.lock").read_bytes() == b""
    job.kill()
    job.wait()
    take_folder().release()


def test_a_job_that_ends_meanwhile_is_waited_for(start: Start) -> None:
    job, _ = start()
    ending = subprocess.Popen(["sh", "-c", f"sleep 0.5; kill -9 {job.pid}"])
    began = time.monotonic()
    require_no_jobs(seconds=60)
    assert 0.4 < time.monotonic() - began < 30
    ending.wait()


def test_the_child_of_a_killed_job_is_still_at_work(start: Start) -> None:
    job, child = start("with-child")
    job.kill()
    job.wait()
    assert refusal(seconds=0).endswith(f" kill {child}. Nothing was changed")
    os.kill(child, 9)
    require_no_jobs(seconds=10)


def test_a_folder_in_which_no_job_has_run_is_free(folder: Path) -> None:
    require_no_jobs(seconds=0)
    assert not JOBS_LOCK.exists()


def test_a_job_by_hand_makes_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert hold_job_lock() is None
    assert list(tmp_path.iterdir()) == []


def test_jobs_of_slurm_are_those_of_a_run_in_the_folder_each_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, link = tmp_path / "a | b", tmp_path / "link"
    here.mkdir()
    link.symlink_to(here)
    monkeypatch.setenv("SLURM_JOB_ID", "15")
    lines = f"""\
11|tightrope_{UUID}|{here}
12|{UUID}|{link}
12|{UUID}|{link}
13|bash|{here}
14|tightrope_{UUID}|{tmp_path}
15|tightrope_{UUID}|{here}
slurm_load_jobs error: of no format
"""
    assert jobs_of(here, lines) == ["11", "12"]
    assert jobs_of(here, "") == []


def write_squeue(folder: Path, monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """Put a squeue that does so first into the PATH."""
    (folder / "bin").mkdir()
    program = folder / "bin" / "squeue"
    program.write_text("\n".join(["#!/bin/sh", *lines]))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


def test_without_slurm_there_are_no_jobs_of_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(folder))
    assert queued_jobs(folder) == []
    require_no_slurm_jobs(slurm=True, seconds=0)


def test_jobs_in_slurms_queue_are_named_with_what_cancels_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_squeue(folder, monkeypatch, f"echo '7|tightrope_{UUID}|{folder}'")
    require_no_slurm_jobs(slurm=False, seconds=0)
    # an earlier run of this folder has used Slurm
    (folder / ".snakemake/slurm_logs").mkdir()
    for slurm in (True, False):
        with pytest.raises(TightropeError, match=r"Slurm jobs 7; .* scancel 7\. Nothing"):
            require_no_slurm_jobs(slurm=slurm, seconds=0)


def test_where_slurm_does_not_answer_a_run_that_needs_it_ends_with_its_words(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_squeue(
        folder, monkeypatch, "echo 'error: Unable to contact slurm\n controller' >&2", "exit 1"
    )
    (folder / ".snakemake/slurm_logs").mkdir()
    require_no_slurm_jobs(slurm=False, seconds=0)
    words = "squeue: error: Unable to contact slurm controller; jobs of an earlier run may"
    with pytest.raises(TightropeError, match=words):
        require_no_slurm_jobs(slurm=True, seconds=0)


def test_without_slurm_no_job_is_submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TightropeError, match="sbatch is not on PATH: Slurm is not installed here"):
        require_slurm()
    (tmp_path / "sbatch").write_text("#!/bin/sh\n")
    (tmp_path / "sbatch").chmod(0o755)
    require_slurm()
