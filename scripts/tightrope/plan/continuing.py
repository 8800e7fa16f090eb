"""The way to the report when jobs ended without their output.

Snakemake then leaves everything undone that needs them, the report too. So Snakemake is started
again: a job that ended writes its failure in place of its work, what needs it copies that, and a
model without data or checkpoint is left out of the plan. The next run of its own tries again.
"""

import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tightrope.jobs.ended import CONTINUES, Ended, continues, kept, known
from tightrope.plan.plan import Plan
from tightrope.plan.reports import REPORTING, report_again
from tightrope.plan.run import LOCAL, executor_of_this_run
from tightrope.terminal.ended import EndedJobs
from tightrope.terminal.jobs import subject_of
from tightrope.terminal.stopping import STOPPED

# runs that go on, at most; each of them but the last finds jobs that end
MOST_RUNS = 6
# options that would run jobs again that have ended well, and that name the scheduler, each with the
# most values that follow it
FORCING = {"-F": 0.0, "--forceall": 0.0, "-f": 0.0, "--force": 0.0}
FORCING |= {"-R": math.inf, "--forcerun": math.inf}
EXECUTOR = {"-e": 1.0, "--executor": 1.0}


def continue_to_report(workflow: Any, plan: Plan, ended_jobs: EndedJobs) -> None:
    """Keep why jobs of this run ended, and write the report without them; to be called on errors.

    Only where this run was to write it, nobody stopped it, and a model is left. The first run that
    goes on uses the same scheduler, because a race may have to be measured on its nodes; the others
    run here.
    """
    if not workflow.is_main_process:
        return
    report_again(job.rule.name for job in workflow.scheduler.failed)
    jobs = list(workflow.dag.needrun_jobs(exclude_finished=False))
    wanted = any(job.rule.name == "render_report" for job in jobs)
    if not wanted or STOPPED.is_set():
        return
    ended = known().with_more(*ended_in(workflow, ended_jobs))
    ended.write()
    correct_times(workflow, ended_jobs.ahead)
    if continues() or set(plan.models) <= ended.models.keys():
        return
    for number in range(MOST_RUNS):
        tell(ended)
        if subprocess.run(command(sys.argv, here=number > 0), env=environment()).returncode == 0:
            return
        if kept() == ended and (number or executor_of_this_run() == LOCAL):
            break
        ended = kept()
    print("The report cannot be written; what it needs is above.", file=sys.stderr)


def correct_times(workflow: Any, files: set[str]) -> None:
    """Give those of the files that jobs make the time of now, where theirs is in the future.

    What is made from them, a failure too, would be refused until that time. A file of the user
    stays as it is.
    """
    made = {str(path) for job in workflow.dag.jobs for path in job.output}
    for path in files & made:
        if Path(path).is_file() and Path(path).stat().st_mtime > time.time():
            os.utime(path)


def ended_in(workflow: Any, ended_jobs: EndedJobs) -> tuple[dict[str, str], dict[str, str]]:
    """Return why outputs are missing whose job ended, and why models lack data or checkpoint."""
    dag = workflow.dag
    outputs: dict[str, str] = {}
    models: dict[str, str] = {}
    for job in workflow.scheduler.failed:
        reason = ended_jobs.reason_of(dag.jobid(job), map(str, job.products()))
        if job.attempt > 1:
            reason = f"{reason} (attempt {job.attempt})"
        if job.rule.name not in REPORTING:  # what goes on is to report, and tries that again
            outputs.update({str(path): reason for path in job.output})
        named = f"{job.rule.name.replace('_', ' ')} of {subject_of_job(job)}: {reason}"
        for model in models_of(path for one in dag.bfs(dag.depending, job) for path in one.output):
            models.setdefault(model, named)
    return outputs, models


def subject_of_job(job: Any) -> str:
    """Return the model and the other wildcards of a Snakemake job."""
    return subject_of(job.rule.name, job.wildcards_dict)


def models_of(outputs: Iterator[str]) -> Iterator[str]:
    """Yield the models whose splits or checkpoint are among the outputs."""
    for path in map(Path, outputs):
        # the last four, as it may be a copy of what is kept in storage
        parts = path.parts[-4:]
        if parts[0] == "artifacts" and len(parts) == 4 and parts[2] in ("splits", "checkpoint"):
            yield parts[1]


def command(words: list[str], *, here: bool) -> list[str]:
    """Return the Snakemake command line `words` for a run that goes on, on this machine if `here`.

    Without what forces jobs to run again, and without Snakemake's lock, which this run holds.
    """
    dropped = {**FORCING, **(EXECUTOR if here else {})}
    local = ["--executor", "local", "--cores", "all"] if here else []
    return [sys.executable, "-m", "snakemake", "--nolock", *local, *without(words[1:], dropped)]


def without(words: list[str], options: dict[str, float]) -> Iterator[str]:
    """Yield the words but these options, each with at most so many values that follow it."""
    values = 0.0
    for word in words:
        if word.startswith("-"):
            name, given, _ = word.partition("=")
            values = options.get(name, 0.0) if not given else 0.0
            if name not in options:
                yield word
        elif values > 0:
            values -= 1
        else:
            yield word


def environment() -> dict[str, str]:
    """Return the environment of a run that goes on after this one."""
    return {**os.environ, CONTINUES: str(os.getpid())}


def tell(ended: Ended) -> None:
    """Say that the run goes on, and what for."""
    one = len(set(ended.outputs.values())) <= 1
    jobs, them = ("A job", "it") if one else ("Jobs", "them")
    print(f"{jobs} ended without a result: the report is written without {them}.", file=sys.stderr)
