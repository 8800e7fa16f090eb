"""One run at a time works in a folder: real processes, the kernel's locks, and a heartbeat."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tightrope.errors import StorageError, TightropeError
from tightrope.jobs.ended import CONTINUES
from tightrope.plan.holder import encoded, read_holder, start_of, this_process
from tightrope.plan.lease import require_free, take_lease

HOLDER = """
import sys, time
from tightrope.plan.lease import take_lease
lease = take_lease(sys.argv[1], beat=0.05)
print("owned" if lease.owned else "continued", flush=True)
time.sleep(60)
"""
# starts the program after it where it holds the lease
ROOT = """
import os, subprocess, sys
from tightrope.plan.lease import take_lease
lease = take_lease(sys.argv[1], beat=0.05)
named = {"itself": os.getpid(), "another": os.getppid()}[sys.argv[2]]
environment = {**os.environ, "TIGHTROPE_CONTINUES": str(named)}
command = [sys.executable, "-c", sys.argv[3], sys.argv[1]]
sys.exit(subprocess.run(command, env=environment).returncode)
"""
CONTINUED = """
import sys
from tightrope.plan.lease import take_lease
lease = take_lease(sys.argv[1])
lease.release()
print(lease.owned)
"""
# a holder under another kernel whose locks are not seen here, and whose clock is wrong
ELSEWHERE = """
import itertools, os, sys, time
from dataclasses import replace
from pathlib import Path
from tightrope.plan.holder import encoded, this_process
path = Path(sys.argv[1], "run.lock")
path.write_bytes(encoded(replace(this_process(), machine="another", host="node2")))
for count in itertools.count():
    skewed = time.time() + float(sys.argv[2])
    os.utime(path, (skewed, skewed))
    if not count:
        print("held", flush=True)
    time.sleep(0.05)
"""
# seconds of silence after which a holder elsewhere counts as ended, here
SILENCE = 1.0
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(repository: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts a program with the folder's path as its first argument; returns at its first line."""
    started = []

    def run(program: str, *words: str, said: str | None = None) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": str(repository / "scripts")}
        command = [sys.executable, "-c", program, str(tmp_path), *words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen(command, env=environment, **pipes))
        if said:
            assert started[-1].stdout.readline() == f"{said}\n"
        return started[-1]

    yield run
    for one in started:
        one.kill()
        one.communicate()


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def refusal(folder: Path, **settings: float) -> str:
    """The message for a second run, which is one line."""
    with pytest.raises(TightropeError) as raised:
        take_lease(folder, **settings)
    assert str(raised.value).isprintable()
    return str(raised.value)


def test_a_second_run_is_told_who_works_in_the_folder_and_how_to_end_it(
    start: Start, tmp_path: Path
) -> None:
    holder = start(HOLDER, said="owned")
    (tmp_path / "locks").mkdir()
    began = time.monotonic()
    message = refusal(tmp_path)
    assert time.monotonic() - began < 1
    this = this_process()
    assert message.startswith(f"{tmp_path.parent}: a run works in this folder already ")
    assert f"({this.user}@{this.host}, process {holder.pid}, since 20" in message
    assert re.search(r": -c \S+\); wait until it has ended, or end it on ", message)
    assert message.endswith(f" with: kill {holder.pid}. Nothing was changed")
    assert (tmp_path / "locks").is_dir()


def test_the_run_after_a_killed_one_takes_its_place_and_removes_snakemakes_locks(
    start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kill(start(HOLDER, said="owned"))
    (tmp_path / "locks").mkdir()
    lease = take_lease(tmp_path)
    assert read_holder(tmp_path / "run.lock") == lease.holder
    assert lease.holder.pid == os.getpid()
    assert not (tmp_path / "locks").exists()
    assert "works in this folder already" in refusal(tmp_path)
    lease.release()
    assert (tmp_path / "run.lock").read_bytes() == b""
    take_lease(tmp_path).release()
    assert capsys.readouterr().err == ""


def test_the_lease_makes_its_folder(tmp_path: Path) -> None:
    take_lease(tmp_path / "new" / ".snakemake").release()
    assert (tmp_path / "new" / ".snakemake" / "run.lock").is_file()


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / ".snakemake").write_text("no folder")
    with pytest.raises(StorageError, match=r"run\.lock: cannot be written"):
        take_lease(tmp_path / ".snakemake")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"pid": -1}'], ids=repr
)
def test_a_damaged_file_names_nobody(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "run.lock").write_bytes(content)
    lease = take_lease(tmp_path)
    assert read_holder(tmp_path / "run.lock") == lease.holder
    lease.release()


def test_what_a_file_names_is_printed_without_control_characters(tmp_path: Path) -> None:
    evil = {"user": "a\x1b[31m", "host": "h\n", "command": "x\ry" * 1000}
    holder = replace(this_process(), **evil)
    (tmp_path / "run.lock").write_bytes(encoded(holder))
    with pytest.raises(TightropeError) as raised:
        require_free(tmp_path / "run.lock", locked=False, silence=0)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 600
    document = json.loads(encoded(holder))
    (tmp_path / "run.lock").write_text(json.dumps({**document, "pid": -1}))
    assert read_holder(tmp_path / "run.lock") is None


def test_a_process_that_has_the_holders_id_by_chance_is_not_the_holder(tmp_path: Path) -> None:
    """Where the file system has no locks, the process alone tells."""
    path = tmp_path / "run.lock"
    alive = this_process()
    path.write_bytes(encoded(alive))
    with pytest.raises(TightropeError, match=f"kill {os.getpid()}"):
        require_free(path, locked=False, silence=0)
    path.write_bytes(encoded(replace(alive, started=alive.started - 1)))
    require_free(path, locked=False, silence=0)


def test_a_zombie_is_not_alive() -> None:
    process = subprocess.Popen(["true"])
    while b" Z " not in Path(f"/proc/{process.pid}/stat").read_bytes():
        time.sleep(0.01)
    assert start_of(process.pid) is None
    process.wait()
    assert start_of(process.pid) is None


@pytest.mark.parametrize("skew", ["0", "-1e8", "1e8"], ids="skew {} s".format)
def test_a_live_run_on_another_host_is_seen_by_its_heartbeat_whatever_its_clock(
    skew: str, start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start(ELSEWHERE, skew, said="held")
    assert "end it on node2 with: kill " in refusal(tmp_path, silence=30 * SILENCE)
    assert "waiting up to 30 s to see whether it is alive" in capsys.readouterr().err


@pytest.mark.parametrize("skew", ["-1e8", "1e8"], ids="skew {} s".format)
def test_a_run_on_another_host_without_heartbeat_has_ended(
    skew: str, start: Start, tmp_path: Path
) -> None:
    kill(start(ELSEWHERE, skew, said="held"))
    began = time.monotonic()
    take_lease(tmp_path, silence=SILENCE).release()
    assert SILENCE <= time.monotonic() - began < 5 * SILENCE


def test_a_run_on_another_host_that_ends_meanwhile_is_not_waited_for_to_the_end(
    start: Start, tmp_path: Path
) -> None:
    kill(start(ELSEWHERE, "0", said="held"))
    later = subprocess.Popen(["sh", "-c", f"sleep 0.5; : > {tmp_path}/run.lock"])
    began = time.monotonic()
    take_lease(tmp_path, silence=60).release()
    assert time.monotonic() - began < 30
    later.wait()


def test_a_run_touches_its_lease(start: Start, tmp_path: Path) -> None:
    start(HOLDER, said="owned")
    path = tmp_path / "run.lock"
    first, deadline = path.stat().st_mtime_ns, time.monotonic() + 10
    while path.stat().st_mtime_ns == first:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_run_whose_place_another_host_has_taken_ends(start: Start, tmp_path: Path) -> None:
    """It was stopped for a minute, or its file server did not answer."""
    holder = start(HOLDER, said="owned")
    other = replace(this_process(), machine="another", host="node2")
    (tmp_path / "run.lock").write_bytes(encoded(other))
    _, errors = holder.communicate(timeout=30)
    assert holder.returncode == -signal.SIGTERM
    assert "this run was silent for too long and ends" in errors
    assert "@node2" in errors
    assert read_holder(tmp_path / "run.lock") == other


def test_a_process_that_continues_the_holders_run_goes_on_without_the_lease(
    start: Start, tmp_path: Path
) -> None:
    (tmp_path / "locks").mkdir()
    root = start(ROOT, "itself", CONTINUED)
    assert root.communicate(timeout=60) == ("False\n", "")
    # its Snakemake finds no lock of the run that waits for it, which has the lease until it ends
    assert not (tmp_path / "locks").exists()
    assert read_holder(tmp_path / "run.lock").pid == root.pid


def test_a_process_that_names_another_one_than_the_holder_is_refused(start: Start) -> None:
    _, errors = start(ROOT, "another", CONTINUED).communicate(timeout=60)
    assert "a run works in this folder already" in errors


def test_a_process_that_the_holder_did_not_start_is_refused(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = start(HOLDER, said="owned")
    monkeypatch.setenv(CONTINUES, str(holder.pid))
    assert f"kill {holder.pid}" in refusal(tmp_path)


def test_a_process_that_continues_a_run_that_has_ended_takes_the_lease(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exported variable stays when the run has ended."""
    parent = replace(this_process(), pid=os.getppid(), started=1)
    (tmp_path / "run.lock").write_bytes(encoded(parent))
    monkeypatch.setenv(CONTINUES, str(os.getppid()))
    lease = take_lease(tmp_path)
    assert lease.owned
    lease.release()
