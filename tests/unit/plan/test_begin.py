"""The begin of a run: one at a time takes the folder, and what it makes again."""

import getpass
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tightrope.artifacts.failures import CONTINUES, write_failure
from tightrope.artifacts.files import write_json
from tightrope.errors import TightropeError
from tightrope.plan import begin
from tightrope.plan.location import Location
from tightrope.plan.plan import Plan

FILES = ["ok.json", "failed.json", "killed.json", "cut.json", "failed.onnx", "missing.json"]
PASSING = {"killed.json", "cut.json"}
FIRST = {"artifacts/m/data/data.json", "artifacts/m/source/checkpoint.json"}
# a run that starts another program, which inherits its lock
RUN = """
import subprocess, time
from tightrope.plan.begin import take_folder
take_folder(slurm=False)
subprocess.Popen(["sleep", "60"], close_fds=False, stdout=subprocess.DEVNULL)
print("taken", flush=True)
time.sleep(60)
"""
UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of Snakemake, as working directory, with a lock that a killed run has left."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".snakemake/locks").mkdir(parents=True)
    (tmp_path / ".snakemake/locks/0.output.lock").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("retry", "tried"),
    [(False, set()), ("transient", PASSING), (True, PASSING | {"failed.json", "failed.onnx"})],
)
def test_failed_files_are_made_again_on_request_and_missing_ones_always(monkeypatch, retry, tried):
    write_json("ok.json", {"status": "ok"})
    write_failure("failed.json", reason="too slow", transient=False)
    write_failure("killed.json", reason="killed", transient=True)
    write_failure("failed.onnx", reason="not exported", transient=False)
    Path("cut.json").write_text("{")
    monkeypatch.setattr(begin, "records", lambda plan: {("m", "v"): FILES})
    monkeypatch.setattr(begin, "failing_files", lambda config, plan: FILES)
    workflow: Any = SimpleNamespace(storage_settings=SimpleNamespace(default_storage_provider=None))
    plan = Plan(**{**dict.fromkeys(Plan._fields), "models": ["m"]})
    asked = {"retry_failed": retry, "remeasure": None}
    words = (workflow, asked, plan, Location("."))
    assert begin.to_make_again(*words) == {"missing.json", *FIRST} | tried
    # a run that goes on tries nothing again
    write_json("ended.json", {"killed.json": "killed"})
    monkeypatch.setenv(CONTINUES, "ended.json")
    asked["remeasure"] = "disturbed"
    assert begin.to_make_again(*words) == {"missing.json", *FIRST}


@pytest.fixture
def first(repository: Path) -> Iterator[subprocess.Popen[str]]:
    """A run that has the folder."""
    environment = {**os.environ, "PYTHONPATH": str(repository / "scripts")}
    command = [sys.executable, "-c", RUN, "--cores", "1\x1b[31m"]
    pipe = {"stdout": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen(command, env=environment, **pipe) as run:
        assert run.stdout.readline() == "taken\n"
        yield run
        with suppress(ProcessLookupError):
            os.killpg(run.pid, 9)


def refusal(*, slurm: bool = False) -> str:
    """The message for a second run, which is one line."""
    with pytest.raises(TightropeError) as raised:
        begin.take_folder(slurm=slurm)
    assert str(raised.value).isprintable()
    return str(raised.value)


def test_a_second_run_is_told_who_works_there_and_takes_the_folder_at_the_end(first, folder):
    """A run that was killed keeps it until the programs that it started have ended."""
    stale = folder / ".snakemake/locks/1.output.lock"
    stale.touch()
    said = refusal()
    assert said.startswith(f"{folder}: a run works here already ({getpass.getuser()}@")
    assert f", process {first.pid}, since 20" in said
    assert ": snakemake --cores 1\\x1b[31m); wait for the end, or end that process there" in said
    first.kill()
    first.wait()
    assert "a run works here already" in refusal()
    assert stale.exists()
    os.killpg(first.pid, 9)
    deadline = time.monotonic() + 10
    while stale.exists() and time.monotonic() < deadline:
        with suppress(TightropeError):
            begin.take_folder(slurm=False)
        time.sleep(0.05)
    assert list(stale.parent.iterdir()) == []
    assert f"process {os.getpid()}," in begin.LOCK.read_text()
    assert f"process {os.getpid()}," in refusal()


def test_where_a_file_cannot_be_locked_snakemakes_own_locks_decide(folder: Path) -> None:
    begin.LOCK.mkdir()
    begin.take_folder(slurm=True)
    assert list((folder / ".snakemake/locks").iterdir())


def write_squeue(folder: Path, monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """Put a squeue that does so first into the PATH."""
    program = folder / "bin" / "squeue"
    program.parent.mkdir()
    program.write_text("\n".join(["#!/bin/sh", *lines]))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


def test_jobs_in_slurms_queue_are_named_with_what_cancels_them(folder, monkeypatch) -> None:
    (folder / "link").symlink_to(folder)
    lines = [f"11|tightrope_{UUID}|{folder}", f"12|{UUID}|{folder}/link", f"13|bash|{folder}"]
    lines.append(f"14|tightrope_{UUID}|/elsewhere")
    write_squeue(folder, monkeypatch, *(f"echo '{line}'" for line in lines))
    assert refusal(slurm=True) == (
        f"{folder}: Slurm jobs 11 12 of an earlier run work here; wait for the end, or scancel 11 "
        "12. Nothing was changed"
    )


@pytest.mark.parametrize("there", [True, False])
def test_where_slurm_does_not_answer_its_words_end_the_run(folder, monkeypatch, there) -> None:
    if there:
        write_squeue(folder, monkeypatch, "echo 'error: Unable to\n contact slurm' >&2", "exit 1")
    else:
        monkeypatch.setenv("PATH", "/bin-that-is-not")
    said = refusal(slurm=True)
    assert said.startswith("squeue: error: Unable to contact slurm; " if there else "squeue: ")
    assert "run this where Slurm answers, as on a login node, or without the profile" in said
