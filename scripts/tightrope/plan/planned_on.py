"""The machine that a run is planned on, asked once.

The process of each job parses the Snakefile again, maybe on another machine: there it takes what
the main process found, from the environment that Snakemake passes on, so that it plans the same.
"""

import json
import os
from functools import cache
from typing import Any, TypedDict

from tightrope.engine_table import ENGINES
from tightrope.machine.host import describe_host
from tightrope.machine.lacks import missing_compiler, missing_packages

VARIABLE = "TIGHTROPE_PLANNED_ON"
ATTEMPTS = "TIGHTROPE_ATTEMPTS"


class Machine(TypedDict):
    """The host, and what is missing on it: to compile C++, and per engine to use its GPU."""

    host: dict[str, Any]
    compiler: str | None
    packages: dict[str, str | None]


def pass_on(*, main: bool) -> None:
    """In the main process, keep this machine for the processes of jobs; they keep what they got."""
    if main or VARIABLE not in os.environ:
        os.environ[VARIABLE] = json.dumps(this_machine())


def planned_on() -> Machine:
    """Return the machine that the run is planned on; outside of a run it is this one."""
    given = os.environ.get(VARIABLE)
    return machine_in(given) if given else this_machine()


def planning_host() -> dict[str, Any]:
    """Return the host that the run is planned on, as `machine.host.describe_host` does."""
    return planned_on()["host"]


def this_machine() -> Machine:
    """Return what is to be known of this machine."""
    return Machine(
        host=describe_host(),
        compiler=missing_compiler(),
        packages={engine: missing_packages(engine) for engine in ENGINES},
    )


@cache
def machine_in(text: str) -> Machine:
    """Return the machine in a value of the environment variable."""
    found: Machine = json.loads(text)
    return found


def last_attempt(workflow: Any, wildcards: Any, attempt: int) -> int:
    """Return 1 when no attempt of the job follows this one, else 0.

    The main process knows Snakemake's --retries; on a cluster's nodes, where it is 0, the number of
    attempts comes from the environment.
    """
    if workflow.is_main_process and workflow.execution_settings is not None:
        os.environ[ATTEMPTS] = str(workflow.execution_settings.retries + 1)
    return int(attempt >= int(os.environ.setdefault(ATTEMPTS, "1")))
