"""Shared by jobs that write one output file: the result, or a failure with its reason."""

from collections.abc import Callable
from typing import Any

from tightrope.artifacts.failures import failure_in, write_failure
from tightrope.artifacts.seals import require_sealed
from tightrope.errors import WorkFailed
from tightrope.jobs.child import Limits, failure, supervised


def run_file_job(job: Any, failed: str, work: Callable[[], None]) -> None:
    """Run the `work` of a `tightrope.jobs.job.Job` in a child; it writes the only output.

    On failure the output holds `failed` (such as "not calibrated") and the reason. A failure in an
    input is copied unchanged, so that the reason names the step that failed. A transient failure
    raises TightropeError unless this is the last attempt.
    """
    ((_, target),) = job.output.items()
    for _, path in job.input.items():
        if (known := failure_in(path)) is not None:
            require_sealed(path)
            return write_failure(target, **known)
    limits = Limits.of(job)
    try:
        supervised(work, limits=limits)
    except WorkFailed as error:
        facts = failure(error, target, limits)
        reason = f"{failed}: {facts['reason']}"
        write_failure(target, reason=reason, transient=facts["transient"])
