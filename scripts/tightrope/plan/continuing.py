"""The way to the report when jobs ended without their output.

Such a job runs again here, to write its failure in place of its work, and then the same command
once more, without models that lack data or checkpoint. The next run tries again what has failed so.
"""

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

from tightrope.artifacts.failures import CONTINUES, known_reasons, write_failure
from tightrope.artifacts.files import write_json
from tightrope.errors import StorageError
from tightrope.plan.plan import Plan
from tightrope.terminal.ended import RECORDS, EndedJobs
from tightrope.terminal.jobs import subject_of
from tightrope.terminal.plugin import STOPPED

FILE = ".snakemake/tightrope/ended.json"
# rules whose old output stays when they fail, and those without which a model is not measured
REPORTING, NEEDED = ("summarize", "render_report"), ("split_data", "train_model")
# the command line that follows, with other values of some options: what has ended, well or not,
# does not run again, and the lock is that of this process
AGAIN = """
import ctypes, pickle, sys
from snakemake.cli import args_to_api, parse_args
ctypes.CDLL(None).prctl(1, 15)  # SIGTERM when this process ends before it
parser, options = parse_args(sys.argv[1:])
vars(options).update(force=False, forceall=False, forcerun=(), ignore_incomplete=True, nolock=True)
vars(options).update(pickle.load(sys.stdin.buffer))
sys.exit(not args_to_api(options, parser))
"""


def continue_to_report(workflow: Any, plan: Plan, ended_jobs: EndedJobs) -> None:
    """Have jobs that ended write their failures, then the report made; to be called on errors."""
    if not workflow.is_main_process or STOPPED.is_set():
        return
    before = known_reasons()
    failed = [job for job in workflow.scheduler.failed if job.rule.name not in REPORTING]
    rules = {job.rule.name for job in workflow.dag.needrun_jobs(exclude_finished=False)}
    reasons = reasons_of(workflow.dag, failed, ended_jobs) if "render_report" in rules else {}
    try:
        if reasons:
            write_json(FILE, {**reasons, **before})
            made = {str(path) for job in workflow.dag.jobs for path in job.output}
            for path in ended_jobs.ahead & made:  # else what is made from it now seems older
                os.utime(path)
            write_failures(failed, reasons)
        for job in workflow.scheduler.failed:
            workflow.persistence.started(job)
    except (OSError, StorageError):  # the disk is full, for which they may have ended
        return
    if reasons.keys() <= before.keys() or reasons.keys() >= {*plan.models}:
        return
    print("Jobs ended without a result: the run goes on without them.", file=sys.stderr)
    snakemake({})


def reasons_of(dag: Any, failed: list[Any], ended_jobs: EndedJobs) -> dict[str, str]:
    """Return why jobs ended by output, and by model why it has no data or no checkpoint."""
    reasons: dict[str, str] = {}
    for job in failed:
        reason = ended_jobs.reason_of(dag.jobid(job), [*map(str, job.products())])
        reason += f" (attempt {job.attempt})" if job.attempt > 1 else ""
        reasons |= {str(path): reason for path in job.output}
        subject = subject_of(job.rule.name, job.wildcards_dict)
        named = f"{job.rule.name.replace('_', ' ')} of {subject}: {reason}"
        without = [one for one in dag.bfs(dag.depending, job) if one.rule.name in NEEDED]
        reasons = {one.wildcards.model: named for one in without} | reasons
    return reasons


def write_failures(failed: list[Any], reasons: dict[str, str]) -> None:
    """Have these jobs write their failures; where one cannot, its failure is the reason alone."""
    specs = [one for job in failed for one in job.get_target_spec()]
    only: dict[str, Any] = {"targets": [], "target_jobs": specs}
    only |= {"allowed_rules": {job.rule.name for job in failed}, "executor": "local"}
    snakemake(only | {"cores": os.cpu_count(), "retries": 0}, capture_output=True)
    for path in (path for job in failed for path in job.output):
        # of a file in storage there may be no copy here
        if path.endswith(RECORDS) and not path.is_storage and not Path(path).exists():
            write_failure(path, reason=reasons[path], transient=True)


def snakemake(options: dict[str, Any], **settings: Any) -> None:
    """Run the command line of this process with other values of its options, under its lock."""
    words, given = [sys.executable, "-c", AGAIN, *sys.argv[1:]], pickle.dumps(options)
    own: dict[str, Any] = {"env": {**os.environ, CONTINUES: FILE}, "close_fds": False}
    subprocess.run(words, input=given, check=False, **own, **settings)
