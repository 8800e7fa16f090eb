"""Ctrl-C and SIGTERM: the jobs of a run end at once, and two lines say how to go on.

Snakemake waits for running jobs after SIGTERM, however long they take, and a Ctrl-C reaches jobs
directly: each would end with a traceback of its own.
"""

import logging
import signal
import sys
import threading
import time
import warnings
from functools import partial
from types import FrameType
from typing import Any

from tightrope.machine.processes import adopt_orphans, end_children

SIGNALS = (signal.SIGINT, signal.SIGTERM)
GRACE_SECONDS = 2.0  # that jobs have to delete their temporary files
STOPPED = threading.Event()  # by a signal


def leave_interrupts_to_snakemake() -> None:
    """Make jobs ignore Ctrl-C, and stop this process by it without a traceback."""
    from snakemake.shell import shell

    if str(shell.get_executable()).endswith("bash"):
        shell.prefix("set -euo pipefail; trap '' INT; ")  # the first half is Snakemake's own
    watch_signals(local=False)


def stop_jobs_on_signals(workflow: Any) -> None:
    """Stop the run and its local jobs on Ctrl-C and SIGTERM; for the main process.

    To be called when the first job starts: Snakemake's scheduler has set its handler of SIGTERM.
    """
    if workflow.is_main_process:
        watch_signals(local=workflow.local_exec)


def watch_signals(*, local: bool) -> None:
    """Handle SIGNALS by `stop`, where this is the main thread: others cannot."""
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            signal.signal(number, partial(stop, local=local))


def stop(number: int, frame: FrameType | None, *, local: bool) -> None:
    """Raise KeyboardInterrupt, on which Snakemake ends a run; end the jobs if they are `local`."""
    for one in SIGNALS:
        # not SIG_IGN, which a job that starts now would inherit
        signal.signal(one, lambda *_: None)
    # the interrupt may hit Snakemake's event loop anywhere, also when its handlers are removed
    sys.excepthook = lambda *_: None
    sys.unraisablehook = lambda *_: None
    logging.lastResort = logging.NullHandler()
    warnings.simplefilter("ignore")
    STOPPED.set()
    if local:
        threading.Thread(target=end_jobs, daemon=True).start()
    raise KeyboardInterrupt


def end_jobs() -> None:
    """End the children of this process, also those that start now, for as long as it lives."""
    adopt_orphans()
    deadline = time.monotonic() + GRACE_SECONDS
    while True:
        end_children(kill=time.monotonic() > deadline)
        time.sleep(0.1)
