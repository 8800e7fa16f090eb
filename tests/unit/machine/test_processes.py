"""Which processes belong to one job, by real processes."""

import os
import signal
import subprocess
from contextlib import ExitStack

from busy import PROCESSORS, busy_child
from tightrope.jobs.child import Child
from tightrope.machine.processes import family
from tiny_model import LIMITS


def test_the_family_of_a_worker_is_its_job_with_all_workers_and_what_started_the_job() -> None:
    shell = ["sh", "-c", "sleep 30 >/dev/null & echo $!"]  # it ends, and init has the program
    stranger = int(subprocess.check_output(shell))
    with ExitStack() as stack:
        stack.callback(os.kill, stranger, signal.SIGKILL)
        one, other = (stack.enter_context(Child(family, LIMITS)) for _ in range(2))
        busy = stack.enter_context(busy_child(PROCESSORS[-1]))
        found = one.ask()
        assert {one.process.pid, other.process.pid, busy.pid, os.getpid(), os.getppid()} <= found
        assert stranger not in found
