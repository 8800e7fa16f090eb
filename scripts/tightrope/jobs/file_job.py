"""Shared by jobs that write one output file: the result, or a failure with its reason."""

from collections.abc import Callable
from typing import Any

from tightrope.artifacts.content import describe_onnx, read_artifact
from tightrope.artifacts.failures import failure_in, is_onnx_file, write_failure
from tightrope.errors import WorkFailed
from tightrope.jobs.child import Limits, failure, supervised


def run_file_job(job: Any, failed: str, work: Callable[[], None]) -> None:
    """Run the `work` of a `tightrope.jobs.job.Job` in a child; it writes the only output.

    On failure the output holds `failed` (such as "not calibrated") and the reason. A failure in an
    input is copied unchanged, so that the reason names the step that failed. A transient failure
    raises TightropeError unless this is the last attempt.
    """
    ((_, target),) = job.output.items()
    write_result_or_failure(job, target, failed, work)
    if is_onnx_file(target):
        describe_onnx(target)


def write_result_or_failure(job: Any, target: str, failed: str, work: Callable[[], None]) -> None:
    """Write the output of a job, see `run_file_job`."""
    for _, path in job.input.items():
        if (known := failure_in(path)) is not None:
            if not is_onnx_file(path):
                read_artifact(path)  # or its reason is not what was written
            return write_failure(target, **known)
    limits = Limits.of(job)
    try:
        supervised(work, limits=limits)
    except WorkFailed as error:
        facts = failure(error, target, limits)
        reason = f"{failed}: {facts['reason']}"
        write_failure(target, reason=reason, transient=facts["transient"])
