"""The jobs of a finished run, each of which can be run again in a fork of this process."""

import os
import runpy
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

SECONDS = 60


@dataclass(frozen=True)
class Job:
    """A job of a run: the name of its rule, its script, and what the script gets of Snakemake."""

    rule: str
    script: Path
    given: dict[str, Any]

    @property
    def log(self) -> Path:
        """Where the job writes."""
        return Path(self.given["log"][0])

    def __str__(self) -> str:
        return f"{self.rule}/{self.log.stem}"


@dataclass(frozen=True)
class End:
    """How a job ended: exit code or "hang", and what it wrote."""

    code: int | str
    said: str

    @property
    def errors(self) -> list[str]:
        """The lines that name an error."""
        return [line for line in self.said.splitlines() if line.startswith("error: ")]


def jobs_of_run(folder: Path) -> list[Job]:
    """Return all jobs of the run in a folder, which becomes the working directory."""
    from snakemake.api import SnakemakeApi
    from snakemake.settings.types import ConfigSettings, DAGSettings, OutputSettings
    from snakemake.settings.types import ResourceSettings as Resources

    os.chdir(folder)
    forget_modules()
    config = ConfigSettings(configfiles=[folder / "config/config.yaml"])
    quiet = redirect_stdout(StringIO()), redirect_stderr(StringIO())
    with quiet[0], quiet[1], SnakemakeApi(OutputSettings()) as api:
        snakefile = folder / "Snakefile"
        run = api.workflow(Resources(cores=2), config, snakefile=snakefile, workdir=folder)
        run.dag(DAGSettings(forceall=True)).printrulegraph()
        return [replayed(job, folder) for job in run._workflow.dag.jobs if job.rule.script]


def forget_modules() -> None:
    """Forget the modules of this project, so that those of another folder are imported."""
    for name in [name for name in sys.modules if name.split(".")[0] == "tightrope"]:
        del sys.modules[name]


def replayed(job: Any, folder: Path) -> Job:
    """Return what is needed of a job of Snakemake's."""
    given = {name: getattr(job, name) for name in ("params", "wildcards", "threads")}
    # without rules and functions of Snakemake's own, which no process of a job gets
    given |= {name: getattr(job, name)._plainstrings() for name in ("input", "output", "log")}
    plain = {name: one for name, one in job.resources.items() if isinstance(one, int | str)}
    given["resources"] = SimpleNamespace(**plain)
    return Job(job.rule.name, folder / "scripts" / Path(job.rule.script).name, given)


def run_again(job: Job, scripts: Path, seconds: float = SECONDS) -> End:
    """Run the script of a job in a fork; return how it ended, at the latest after so many seconds.

    Of memory it has the limit of its own child: one of address space would end V8 in the charts.
    """
    job.log.parent.mkdir(parents=True, exist_ok=True)
    job.log.write_bytes(b"")
    with tempfile.TemporaryDirectory(prefix="replayed.") as scratch:
        code = in_fork(lambda: run_script(job, scripts, scratch), seconds)
    return End(code, job.log.read_text(errors="replace"))


def in_fork(work: Callable[[], None], seconds: float) -> int | str:
    """Run `work` in a fork that leads a process group; return its exit code, or "hang"."""
    pid = os.fork()
    if not pid:
        os.setsid()
        code = 1
        try:
            work()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    deadline = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return "hang"
        time.sleep(0.005)


def run_script(job: Job, scripts: Path, scratch: str) -> None:
    """Run the script of a job in this process, with the modules of its project."""
    os.environ["TMPDIR"] = tempfile.tempdir = scratch
    forget_modules()
    sys.path.insert(0, str(scripts))
    runpy.run_path(str(job.script), {"snakemake": SimpleNamespace(**job.given)}, "__main__")
