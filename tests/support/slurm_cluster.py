"""Commands of the Slurm that slurm_keeper.py keeps, and its start."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import slurm_keeper
from slurm_keeper import CLIENTS, NODES

PACKAGES = "munge slurmctld slurmd slurm-client"
DAEMONS = ("munged", "slurmctld", "slurmd")


class Job(NamedTuple):
    """A job of the queue: `comment` is `rule_{rule}_wildcards_{wildcards}`."""

    number: str
    state: str
    node: str
    folder: str
    comment: str


class Cluster:
    """The commands of a running cluster."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def path(self) -> str:
        """The PATH with which programs of Slurm are those of this cluster."""
        return f"{self.folder / 'bin'}:{os.environ['PATH']}"

    def ask(self, *words: str) -> str:
        """What a command of Slurm prints; one that fails fails the test."""
        words = (str(self.folder / "bin" / words[0]), *words[1:])
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def jobs(self, folder: Path | None = None) -> list[Job]:
        """All jobs, the ended ones too, in the order of their numbers; those of one folder."""
        lines = self.ask("squeue", "-h", "-S", "i", "--states=all", "-o", "%A|%T|%N|%Z|%k")
        jobs = [Job(*line.split("|", 4)) for line in lines.splitlines()]
        return [job for job in jobs if folder is None or job.folder == str(folder)]

    def at_work(self) -> list[Job]:
        """The jobs that have not ended."""
        return [job for job in self.jobs() if job.state in ("PENDING", "RUNNING", "COMPLETING")]

    def clear(self) -> None:
        """Cancel all jobs, and make all nodes usable again."""
        if jobs := self.at_work():
            self.ask("scancel", *(job.number for job in jobs))
        assert wait_for(lambda: not self.at_work(), 30), self.jobs()
        for line in self.ask("sinfo", "-h", "-N", "-t", "down,drain", "-o", "%N").split():
            self.ask("scontrol", "update", f"NodeName={line}", "State=RESUME")
        assert wait_for(lambda: idle(self) >= len(NODES), 30), self.ask("sinfo", "-N", "-l")


def wait_for(look: Callable[[], Any], seconds: float) -> Any:
    """What `look` returns as soon as it is true, else what it returns at the end."""
    deadline = time.monotonic() + seconds
    while not (found := look()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def missing() -> str | None:
    """Why no cluster can be started here, or None."""
    if absent := [name for name in (*DAEMONS, *CLIENTS) if not shutil.which(name)]:
        return f"no {', '.join(absent)} here: apt-get install {PACKAGES}"
    return "slurmd needs root" if os.geteuid() else None


def start_cluster(folder: Path) -> None:
    """Start a cluster whose state is in `folder`; return when its nodes are idle.

    It ends with the process that runs all the tests. Raises RuntimeError where it does not start.
    """
    folder.mkdir()
    owner = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    with (folder / "keeper.log").open("w") as log:
        words = [sys.executable, slurm_keeper.__file__, str(folder), str(owner)]
        streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
        keeper = subprocess.Popen(words, **streams, start_new_session=True)
    usable = wait_for(lambda: keeper.poll() is not None or idle(Cluster(folder)) == len(NODES), 60)
    if keeper.poll() is not None or not usable:
        logs = [f"{path}: {path.read_text()[-2000:]}" for path in sorted(folder.glob("*.log"))]
        keeper.terminate()
        raise RuntimeError("\n".join(["Slurm did not start", *logs]))


def idle(cluster: Cluster) -> int:
    """The number of idle nodes, 0 while no slurmctld answers."""
    with suppress(AssertionError, OSError, subprocess.TimeoutExpired):
        return len(cluster.ask("sinfo", "-h", "-N", "-p", "main", "-t", "idle", "-o", "%N").split())
    return 0
