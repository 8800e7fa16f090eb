"""Jobs as forks of a process that has imported PyTorch and transformers, but no module of ours.

A job that loads a model takes three seconds for them. `serve` makes a program that stands for
Python where Snakemake starts a job, or a Snakemake on a node: it hands the job's words,
environment, folder and files to a server, and ends as the job does. The process that forks has one
thread, and has loaded no library that another thread could be in: of forks of one that had loaded
NNCF, OpenVINO and OpenBLAS with threads, two waited for a lock for ever.
"""

import atexit
import ctypes
import importlib
import json
import os
import random
import runpy
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1
# as tightrope.model.module hides them: transformers imports them where it finds them
HIDDEN = ("torchao", "scipy", "sklearn")
MODULES = (
    "safetensors.torch",
    "torch.export._trace",
    "torch.onnx._internal.exporter._core",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto",
    "transformers.models.bert.modeling_bert",
)
CLIENT = """#!{python} -IS
import json, os, socket, sys
words = sys.argv[1:]
if words[:2] != ["-m", "snakemake"] and "/.snakemake/scripts/" not in "".join(words[:1]):
    os.execv({python!r}, [{python!r}, *words])
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
socket.send_fds(server, [b"."], [0, 1, 2])
server.sendall(json.dumps([words, os.getcwd(), dict(os.environ)]).encode())
server.shutdown(socket.SHUT_WR)
code = int(server.recv(16))
os.kill(os.getpid(), -code) if code < 0 else sys.exit(code)
"""


def import_libraries() -> None:
    """Import what jobs import, if that was not done."""
    sys.modules.update(dict.fromkeys(HIDDEN))  # type: ignore[arg-type]  # stub lacks None
    for name in MODULES:
        importlib.import_module(name)
    for name in HIDDEN:
        del sys.modules[name]
    assert len(list(Path("/proc/self/task").iterdir())) == 1


def serve(folder: Path) -> None:
    """Serve jobs in a fork, which ends with this process; the program that asks is its Python."""
    address, client = folder / "jobs", folder / "python"
    client.write_text(CLIENT.format(python=sys.executable, address=str(address)))
    client.chmod(0o700)
    sys.executable = str(client)
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"  # a node's Snakemake is found in it
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(address))
    listener.listen()
    if not os.fork():
        end_with_parent()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nothing waits for who serves a job
        while True:
            connection, _ = listener.accept()
            # a job's parent has no other job, as the shell that starts it
            if not os.fork():
                listener.close()
                serve_one(connection)
            connection.close()
    listener.close()


def serve_one(connection: socket.socket) -> NoReturn:
    """Run the job that is asked for in a fork, tell its exit code and end."""
    end_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    files = socket.recv_fds(connection, 1, 3)[1]
    request = json.loads(connection.makefile("rb").read())
    job = os.fork()
    if not job:
        connection.close()
        end_with_parent()
        end_as(run_job, files, *request)
    code = os.waitstatus_to_exitcode(os.waitpid(job, 0)[1])
    connection.sendall(str(code).encode())
    os._exit(0)


def end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run_job(files: list[int], words: list[str], folder: str, environment: dict[str, str]) -> None:
    """Run the script or the module in this process as Python would."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    random.seed()
    sys.modules["numpy"].random.seed()
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")


def end_as(program: Callable[..., None], *words: Any) -> NoReturn:
    """Run the program and end this process with its exit code, as Python does.

    But no module that the fork shares is taken apart, which takes half a second.
    """
    code: Any = 0
    try:
        program(*words)
    except SystemExit as error:
        code = error.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()  # waits for the threads that are no daemons
    atexit._run_exitfuncs()
    if isinstance(code, str):
        print(code, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))
