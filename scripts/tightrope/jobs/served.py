"""The side of a job's child process: it answers the requests of its parent."""

import ctypes
import os
import signal
import tempfile
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from tightrope.artifacts.files import full_disk
from tightrope.errors import (
    ArtifactError,
    StorageError,
    WorkFailed,
    in_one_line,
    is_out_of_memory,
)
from tightrope.jobs.messages import Failed, Raised, Reply, Request, Returned

PR_SET_PDEATHSIG = 1
# errors of the environment, not of the variant: they end the job
PASSED_ON = (ArtifactError, StorageError)


def serve(
    handler: Callable[..., Any], there: Connection, pipe: Connection, parent: int, scratch: str
) -> None:
    """Answer requests in the child until the pipe closes, with temporary files in `scratch`."""
    there.close()
    # the environment variable is for C++ libraries and subprocesses
    os.environ["TMPDIR"] = tempfile.tempdir = scratch
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if os.getppid() != parent:
        return
    while True:
        try:
            request = pipe.recv()
        except EOFError:
            return
        pipe.send(answer(handler, request))


def answer(handler: Callable[..., Any], request: Request) -> Reply:
    """Call the handler; return what it returned, or how it failed."""
    try:
        return Returned(handler(*request.arguments))
    except PASSED_ON as error:
        return Raised(error)
    except MemoryError:
        return Failed("out of memory", True)
    except Exception as error:
        if (refused := full_disk(error)) is not None:
            return Raised(refused)
        if isinstance(error, WorkFailed):
            return Failed(error.reason, error.transient)
        traceback.print_exc()
        return Failed(in_one_line(error), is_out_of_memory(error))
