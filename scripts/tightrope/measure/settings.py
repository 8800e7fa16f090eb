"""Settings of a job that measures engines."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, TextIO

from tightrope.jobs.execution import Execution

Shape = dict[str, int]


@dataclass(frozen=True, kw_only=True)
class TimingSettings:
    """How engines are timed, and at which shapes.

    `plan` holds the `latency` settings. Up to `quiet_seconds` may be lost to other load; messages
    about waiting go to `terminal`. Texts are cut at `max_sequence` tokens. `streams` are numbers of
    streams of a GPU on which the variant is timed as well.
    """

    shapes: list[Shape]
    plan: dict[str, Any]
    quiet_seconds: float
    max_sequence: int
    execution: Execution
    terminal: TextIO
    streams: Sequence[int] = ()

    @classmethod
    def of(cls, job: Any) -> Self:
        """Return the settings of a job, see `tightrope.jobs.job.current_job`.

        Raises TightropeError where this machine does not match the host key of the job.
        """
        return cls(
            shapes=job.params.shapes,
            plan=job.params.latency,
            quiet_seconds=job.resources.quiet_seconds,
            max_sequence=job.params.max_sequence,
            execution=Execution.of(job),
            terminal=job.terminal,
            streams=dict(job.params.items()).get("streams", ()),
        )
