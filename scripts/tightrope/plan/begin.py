"""The begin of a run: it takes the folder, and makes again what is asked for, missing or stale.

One run at a time works in a folder: the kernel's lock on a file there, and Slurm's queue.
"""

import atexit
import fcntl
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil

from tightrope.artifacts.content import IMPORTED, made_with, made_with_of
from tightrope.artifacts.failures import failure_in, known_reasons
from tightrope.artifacts.files import cannot_be_written, read_json, refusal_to_write
from tightrope.artifacts.manifest import FOLDERS
from tightrope.errors import ArtifactError, TightropeError, nearest, or_exit
from tightrope.machine.interference import OF_RUN
from tightrope.plan.announce import announce
from tightrope.plan.hosts import Document, require_nodes
from tightrope.plan.location import Location, files_here, missing_of, require_storable
from tightrope.plan.plan import Plan, failing_files, records
from tightrope.plan.reports import REPORTS
from tightrope.summary.document import exit_with_failures

LOCK = Path(".snakemake/run.lock")
# records that wait for that of accuracy; one without calls is small
TIMES, UNTIMED_BYTES = ("latency", "activation"), 10_000
SQUEUE = "squeue --me --noheader --format='%A|%j|%Z'"  # id, name and working directory
# folders beside those of models
NO_MODEL = ("machine", "hosts", "logs")
# how the name that a run of Snakemake gives to its jobs ends
NAME = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


def begin_with_dag(workflow: Any, config: Document, plan: Plan, location: Location) -> None:
    """Have the main process begin the run just before Snakemake builds the DAG.

    Only then it is known whether jobs are to be executed, and no file has been looked at.
    """
    prepare_dag = workflow._prepare_dag

    def prepare(*words: Any, **settings: Any) -> None:
        if not location.module:
            or_exit(require_planned, workflow.dag_settings.targets, plan)
        if workflow.executor_plugin and not workflow.dryrun:
            or_exit(begin, workflow, config, location)
        if workflow.dryrun or location.module:  # Snakemake calls no hook of these
            announce(workflow, config, plan)
        prepare_dag(*words, **settings)
        workflow.dag.forcefiles |= to_make_again(workflow, config, plan, location)
        decide_by_digests(workflow, location)

    if workflow.is_main_process:
        workflow._prepare_dag = prepare


def require_planned(targets: Iterable[Any], plan: Plan) -> None:
    """Raise TightropeError for a target of a model or a variant that is not configured.

    Snakemake says of it only that it has no rule.
    """
    for target in map(str, targets):
        folder, *parts = target.split("/")
        if folder not in FOLDERS or len(parts) < 2 or parts[0] in NO_MODEL:
            continue
        model, *rest = parts
        words, allowed = f"no model {model}", list(plan.models)
        if model in allowed and rest[0] == "bundle" and rest[1:] and rest[1]:
            variant = rest[1].removesuffix(".tar.gz").removesuffix(".triton")
            allowed = [str(one) for name, one in plan.jobs if name == model]
            words = f"no variant {variant} of {model}"
            model = variant
        if model not in allowed:
            raise TightropeError(
                f"{target}: the configuration has {words}{nearest(model, allowed)}; if another "
                "run has it, give its --configfile"
            )


def begin(workflow: Any, config: Document, location: Location) -> None:
    """Take the folder for a run; raise TightropeError where it cannot begin."""
    if known_reasons():  # it has inherited the folder
        return name_holder()
    if " " in sys.executable:
        raise TightropeError(
            f"{sys.executable}: Snakemake does not quote the path of Python where it starts a job "
            "(snakemake#2645); run this from a folder without a space in its path"
        )
    # of a full disk Snakemake says only that, with its traceback
    if (refusal := refusal_to_write(LOCK.parent)) is not None:
        raise cannot_be_written(LOCK.parent.absolute(), refusal)
    require_nodes(config, local=workflow.local_exec)
    if location.stored:
        require_storable(config, sys.argv)
    if not location.module:  # whose importer has a lock
        take_folder(slurm=workflow.executor_plugin.name == "slurm")
    with suppress(OSError):
        OF_RUN.unlink(missing_ok=True)
    if config["strict"]:
        # Snakemake calls no hook when there is nothing to do
        atexit.register(exit_with_failures, Path(location.made(REPORTS[0])))


def to_make_again(workflow: Any, config: Document, plan: Plan, location: Location) -> set[str]:
    """Return failed and disturbed records, as the configuration asks, and missing files.

    Snakemake itself makes no missing file that only current ones need.
    """
    own = [path for paths in records(plan).values() for path in paths]
    retry, again = (not known_reasons() and config[key] for key in ("retry_failed", "remeasure"))
    failing = map(location.made, failing_files(config, plan) if retry else [])
    with files_here(workflow, failing, 2**20) as files:
        found = {str(path) for path in files if path.is_file() and has_failed(path, retry)}
    if again:
        from tightrope.plan.disturbed_records import is_disturbed  # slow import, seldom needed

        with files_here(workflow, map(location.made, own)) as files:
            found |= {str(path) for path in files if is_disturbed(path)}
    found |= {path for path in map(location.made, own) if no_more_collapsed(Path(path))}
    for model in plan.models:  # what its splits and its checkpoint are made from
        own += [f"artifacts/{model}/data/data.json", f"artifacts/{model}/source/checkpoint.json"]
    return found | missing_of(workflow, map(location.made, own))


def has_failed(path: Path, which: Any) -> bool:
    """Return whether the file is damaged or holds a failure, with `transient` one that is so."""
    try:
        failure = failure_in(path)
    except ArtifactError:
        return True
    return failure is not None and (failure["transient"] or which != "transient")


def no_more_collapsed(path: Path) -> bool:
    """Return whether a record of times says collapsed, and that of accuracy does not any more.

    Snakemake does not see it: more examples for the accuracy make no times again.
    """
    stem, kind = path.stem.rpartition(".")[::2]
    if kind not in TIMES or not path.is_file() or path.stat().st_size > UNTIMED_BYTES:
        return False
    judged = path.with_name(f"{stem}.accuracy.json")
    try:
        failure = failure_in(path)
        if failure is None or not failure["reason"].startswith("collapsed: "):
            return False
        return judged.is_file() and read_json(judged, dict[str, Any]).get("collapsed") is None
    except ArtifactError:
        return False


def take_folder(*, slurm: bool) -> None:
    """Take the working directory until this process, and all that inherit the lock, have ended.

    Snakemake's own locks, which a killed run leaves, are removed. Raises TightropeError that names
    the run at work in the folder, or where jobs go to Slurm those of an earlier run.
    """
    LOCK.parent.mkdir(exist_ok=True)
    try:
        lock = os.open(LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = LOCK.read_bytes()[:400].decode(errors="replace")
        raise taken(f"a run works here already ({holder})", "end that process there") from None
    except OSError:  # no locks in this file system, or another user's file: Snakemake's own decide
        return
    os.set_inheritable(lock, True)
    name_holder()
    if slurm and (jobs := " ".join(queued_jobs())):
        raise taken(f"Slurm jobs {jobs} of an earlier run work here", f"scancel {jobs}")
    for stale in LOCK.parent.glob("locks/*.lock"):
        stale.unlink()


def taken(why: str, how: str) -> TightropeError:
    """Return the error of a run that finds the folder taken, with how to free it."""
    return TightropeError(f"{Path.cwd()}: {why}; wait for the end, or {how}. Nothing was changed")


def name_holder() -> None:
    """Write into the file of the lock who this process is."""
    since = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    user, command = psutil.Process().username(), " ".join(["snakemake", *sys.argv[1:]])
    LOCK.write_text(f"{user}@{platform.node()}, process {os.getpid()}, since {since}: {command}")


def queued_jobs() -> list[str]:
    """Return the ids of jobs of runs in this folder; raise TightropeError without an answer."""
    # variables of squeue would change what it lists
    own = {name: text for name, text in os.environ.items() if not name.startswith("SQUEUE_")}
    done = subprocess.run(SQUEUE, shell=True, env=own, capture_output=True, text=True, check=False)
    if done.returncode:
        raise TightropeError(
            f"squeue: {' '.join(done.stderr.split())}; run this where Slurm answers, as on a login "
            "node, or without the profile"
        )
    jobs = [line.split("|", 2) for line in done.stdout.splitlines()]
    return [job for job, name, at in jobs if NAME.search(name) and Path(at).resolve() == Path.cwd()]


def decide_by_digests(workflow: Any, location: Location) -> None:
    """Have such files made again unless they were made with the settings and inputs of now.

    For those that were, Snakemake gets the record that it has of what it made itself, so that its
    own triggers decide from then on. To be called with the DAG that Snakemake is about to build.
    What plans no run, such as --summary, and files in storage are left to Snakemake.
    """
    if location.stored or workflow.execution_settings is None:
        return
    update_needrun = workflow.dag.update_needrun

    async def decide_and_update(*words: Any, **settings: Any) -> None:
        await decide(workflow, location)
        await update_needrun(*words, **settings)

    workflow.dag.update_needrun = decide_and_update


async def decide(workflow: Any, location: Location) -> None:
    """Decide about the outputs of all jobs that Snakemake has no record of; say so in one line.

    What a killed job has left is left to Snakemake.
    """
    again: list[str] = []
    for job in workflow.dag.jobs:
        # not of a workflow that imports this one
        own = str(job.rule.snakefile).startswith(location.project)
        if not own or workflow.persistence.has_metadata(job):
            continue
        existing = [path for path in job.output if await path.exists()]
        if not existing or await workflow.persistence.incomplete(job):
            continue
        documents = [path for path in existing if path.endswith(".json")] or existing[:1]
        if {made_with_of(path) for path in documents} <= {IMPORTED, made_with(job)}:
            await workflow.persistence.finished(job)
            workflow.persistence.deactivate_cache()  # of records, in which there is none
        else:
            again += existing
    workflow.dag.forcefiles.update(again)
    if again:
        print(
            f"{again[0]}{f' and {len(again) - 1} more' if again[1:] else ''}: made with other "
            "settings or inputs, or by an earlier version (Snakemake has no record); made again",
            file=sys.stderr,
        )
