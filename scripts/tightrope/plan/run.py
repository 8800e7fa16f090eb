"""Main-process steps around a run: its executor, failed records, exit code of `strict`."""

import atexit
import io
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout
from functools import cache, partial
from pathlib import Path

from tightrope.artifacts.failures import failure_in, is_onnx_file
from tightrope.artifacts.files import read_json
from tightrope.errors import ArtifactError
from tightrope.jobs import ended
from tightrope.summary.failures import failures

# values of `remeasure` and of `retry_failed` in the configuration
DISTURBED, TRANSIENT = "disturbed", "transient"
# executors of Snakemake; the first is its default
LOCAL, SLURM = "local", "slurm"
# Snakemake command-line options with which it executes no job
WITHOUT_JOBS = (
    "dryrun",
    "touch",
    "unlock",
    "lint",
    "report",
    "list_target_rules",
    "list_rules",
    "print_compilation",
    "dag",
    "rulegraph",
    "filegraph",
    "d3dag",
    "containerize",
    "generate_unit_tests",
    "cleanup_metadata",
    "conda_create_envs_only",
    "list_conda_envs",
    "conda_cleanup_envs",
    "cleanup_shadow",
    "list_changes",
    "list_input_changes",
    "list_params_changes",
    "list_untracked",
    "summary",
    "detailed_summary",
    "archive",
    "delete_all_output",
    "delete_temp_output",
)


def executor_of(words: list[str]) -> str | None:
    """Return the executor of the jobs that the Snakemake command line `words` executes.

    None where it executes none. The first word is the program. A Snakefile cannot see the options,
    so Snakemake's parser parses them again, profiles included; its output is suppressed because
    Snakemake has already printed it.
    """
    from snakemake.cli import parse_args

    if Path(words[0]).stem not in ("snakemake", "__main__"):
        return None
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        _, options = parse_args(words[1:])
    if any(getattr(options, name, None) for name in WITHOUT_JOBS):
        return None
    return options.executor or LOCAL


@cache
def executor_of_this_run() -> str | None:
    """Return `executor_of` this process; asked several times, parsing takes 0.2 s."""
    return executor_of(sys.argv)


def this_run_executes_jobs() -> bool:
    """Return whether this process executes jobs."""
    return executor_of_this_run() is not None


def delete_failed(paths: Iterable[Path | str], *, transient: bool = False) -> list[Path]:
    """Delete the files that hold a failure or cannot be read; return them without duplicates.

    With `transient` only those that another attempt may mend: out of memory or time, killed.
    """
    return deleted(files_where(has_failed_in_passing if transient else has_failed, paths))


def delete_ended(paths: Iterable[Path | str]) -> list[Path]:
    """Delete the failures of jobs that the last run in this folder went on without; return them.

    A result that a slow file system showed too late may have taken the place of its failure: it
    gets the time of now, so that the report is newer no more. A record that came without its logits
    is deleted with what is there of them.
    """
    outputs = ended.kept().outputs
    ended.keep_missing()
    if not outputs:
        return []
    failed = deleted(files_where(partial(has_failed_for, {*outputs.values()}), paths))
    late = files_where(Path.exists, outputs)
    for path in late:
        os.utime(path)
    return failed + deleted(files_where(lacks_logits, late))


def lacks_logits(path: Path) -> bool:
    """Return whether the file is a record of accuracy, or its logits, and they do not match."""
    from tightrope.records.accuracy import AccuracyRecord, record_with  # slow import, seldom needed

    record = record_with(path)
    if record is None:
        return False
    try:
        AccuracyRecord.read(record)
    except ArtifactError:
        return True
    return False


def disturbed_among(paths: Iterable[Path | str]) -> list[Path]:
    """Return those of the records that have disturbed times, without duplicates."""
    from tightrope.plan.disturbed_records import is_disturbed  # slow import, only for remeasure

    return files_where(is_disturbed, paths)


def delete_disturbed(paths: Iterable[Path | str]) -> list[Path]:
    """Delete the records with disturbed times; return them without duplicates."""
    return deleted(disturbed_among(paths))


def files_where(holds: Callable[[Path], bool], paths: Iterable[Path | str]) -> list[Path]:
    """Return the files for which `holds` is true, without duplicates."""
    files = [path for path in map(Path, dict.fromkeys(paths)) if path.is_file()]
    return [path for path in files if holds(path)]


def deleted(files: list[Path]) -> list[Path]:
    """Delete the files; return them."""
    for path in files:
        path.unlink()
    return files


def has_failed_for(reasons: set[str], path: Path) -> bool:
    """Return whether the file holds a failure for one of the reasons, or cannot be read."""
    try:
        reason = (failure_in(path) or {}).get("reason")
    except ArtifactError:
        return True
    return reason is not None and any(one in str(reason) for one in reasons)


def has_failed_in_passing(path: Path) -> bool:
    """Return whether the file holds a failure that is transient, or cannot be read."""
    try:
        return bool((failure_in(path) or {}).get("transient"))
    except ArtifactError:
        return True


def has_failed(path: Path) -> bool:
    """Return whether the record or artifact holds a failure, or cannot be read."""
    try:
        if is_onnx_file(path):
            return failure_in(path) is not None
        document = read_json(path)
    except ArtifactError:
        return True
    # artifacts that are no records, such as a calibration, have a status only on failure
    return not isinstance(document, dict) or document.get("status", "ok") != "ok"


def end_strictly(summary: Path | str) -> None:
    """Make this process exit with code 1 when `summary` holds a failed variant at its end.

    Registered with atexit, because Snakemake calls no hook when there is nothing to do.
    """
    atexit.register(exit_with_failures, Path(summary))


def exit_with_failures(summary: Path) -> None:
    """End the process with exit code 1 where a variant of `summary` failed."""
    if not summary.is_file():
        return
    try:
        failed = [f"{one['model']}/{one['variant']}: {one['reason']}" for one in failures(summary)]
    except ArtifactError as error:
        failed = [str(error)]
    if failed:
        print(f"strict: {len(failed)} failed: " + "; ".join(failed), file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)
