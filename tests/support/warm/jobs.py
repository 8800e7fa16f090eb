"""Jobs in forks of a process that has already imported what they do, but none of the project.

`python` beside this file stands for Python where Snakemake starts a job: it passes the job's script
and its own environment, folder and files to `serve`, and ends as the job does.
"""

import ctypes
import importlib
import json
import os
import random
import signal
import socket
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from endings import end_as

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
CLIENT = Path(__file__).parent / "python"
# as tightrope.model.module hides them: transformers imports them where it finds them
HIDDEN = ("torchao", "scipy", "sklearn")
# None of them changes PyTorch, or starts threads that a fork would miss, as onnxruntime does.
MODULES = (
    "safetensors.torch",
    "transformers.models.bert.modeling_bert",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto",
)
# with all that is installed
OTHERS = (
    "altair",
    "jinja2",
    "nncf",
    "onnxscript.function_libs.torch_lib.ops",
    "onnxslim",
    "openvino",
    "scipy.stats",
    "torch.export._trace",
    "torch.onnx._internal.exporter._core",
)


def import_libraries() -> None:
    """Import what jobs import."""
    sys.modules.update(dict.fromkeys(HIDDEN))  # type: ignore[arg-type]  # stub lacks None
    for name in MODULES:
        importlib.import_module(name)
    for name in HIDDEN:
        del sys.modules[name]
    for name in OTHERS:
        importlib.import_module(name)


def serve(place: Path) -> Path:
    """Serve jobs in a fork, which ends with this process; return what stands for Python."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place / "jobs"))
    listener.listen()
    if not os.fork():
        end_with_parent()
        while True:
            connection, _ = listener.accept()
            reap()
            # one for each job, so that a job's parent has no other, as the shell that starts it
            if not os.fork():
                listener.close()
                end_with_parent()
                run_one(connection)
            connection.close()
    listener.close()
    client = place / CLIENT.name
    client.symlink_to(CLIENT)
    return client


def run_one(connection: socket.socket) -> NoReturn:
    """Run the job that is asked for in a fork, tell its exit code and end."""
    files = socket.recv_fds(connection, 1, 3)[1]
    request = json.loads(connection.makefile("rb").read())
    job = os.fork()
    if not job:
        connection.close()
        end_with_parent()
        end_as(partial(run_job, files, **request))
    code = os.waitstatus_to_exitcode(os.waitpid(job, 0)[1])
    connection.sendall(str(code).encode())
    os._exit(0)


def reap() -> None:
    """Forget the children that have ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def adopt_orphans() -> None:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run_job(
    files: list[int], script: str, folder: str, environment: dict[str, str], ignored: list[int]
) -> None:
    """Run the script in this process as Python would."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
    random.seed()
    sys.modules["numpy"].random.seed()
    sys.argv = [script]
    sys.path.insert(0, str(Path(script).parent))
    main = ModuleType("__main__")
    main.__file__ = script
    sys.modules["__main__"] = main
    exec(compile(Path(script).read_bytes(), script, "exec"), main.__dict__)
