"""Bundles that MLServer serves, and the server, a process of its own."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bundles import SCRIPTS, TEMPLATE, folder_of, measured, programs_of, unpack
from tightrope.bundle.subject import Paths
from tightrope.bundle.write import write_bundle
from tightrope.jobs.child import supervised
from tightrope.plan.bundles import FOLDER
from tightrope.variants import Variant
from tiny_model import LIMITS, LONGEST, TinyModel, name_variant

# packages of envs/test-servers.txt, apart from the others; the variable names another folder
SERVERS = Path(os.environ.get("TESTS_SERVERS", Path(sys.prefix) / "servers"))
NONE = f"no {SERVERS}: envs/test-servers.txt is not installed"
PROGRAM = SCRIPTS / FOLDER / "mlserver.py"
SECONDS = 60
MadeOnce = Callable[[str, Callable[[Path], object]], Path]
# what most tests serve
QUICK, TEXT_SHAPES = name_variant("onnxruntime", "fp32"), [{"batch": 1, "sequence": 16}]


class Server(NamedTuple):
    """A running server, and where it listens."""

    http: int
    grpc: int
    log: Path

    def ask(self, path: str, body: bytes | dict[str, Any] | None = None) -> tuple[int, Any]:
        """Its status and answer, read as JSON where there is one; None for no answer."""
        content = json.dumps(body).encode() if isinstance(body, dict) else body
        kind = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.http}{path}", content, kind)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def infer(self, model: str, name: str, elements: list[str]) -> list[str]:
        """The labels of those texts, or of image files in base64."""
        status, answer = self.ask(f"/v2/models/{model}/infer", request_of(name, elements))
        assert status == 200, answer
        outputs = {one["name"]: one["data"] for one in answer["outputs"]}
        assert len(outputs["score"]) == len(elements)
        return outputs["label"]


def request_of(name: str, elements: list[Any], **changed: Any) -> dict[str, Any]:
    """An inference request; `changed` are fields of its input."""
    tensor = {"name": name, "datatype": "BYTES", "shape": [len(elements)], "data": elements}
    return {"inputs": [{**tensor, **changed}]}


def served_folder(
    made_once: MadeOnce,
    model: TinyModel,
    engine: Path,
    variant: Variant,
    *,
    shapes: list[dict[str, int]] = TEXT_SHAPES,
    request: str = "texts",
) -> Path:
    """The unpacked bundle for MLServer of that variant, made once; not to be changed."""

    def make(folder: Path) -> None:
        paths = measured(model, engine, folder, variant, shapes)
        archive = folder / "bundle.mlserver.tar.gz"
        supervised(write_served, paths, archive, variant.engine, request, limits=LIMITS)
        unpack(archive, folder)

    return folder_of(made_once(f"mlserver-{request}-{variant}", make))


def write_served(paths: Paths, target: Path, engine: str, request: str) -> None:
    """Write the bundle as its rule does."""
    programs = programs_of(engine, request)
    facts = {"template": TEMPLATE, "longest": LONGEST, "mlserver": PROGRAM}
    write_bundle(target, paths, programs=programs, **facts)


@contextmanager
def serving(folder: Path, log: Path) -> Iterator[Server]:
    """MLServer that serves a folder on free ports until the end."""
    http, grpc, metrics = free_ports(3)
    with log.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, SERVERS / "bin/mlserver", "start", "."],
            cwd=folder,
            env=environment(http, grpc, metrics),
            stdout=stream,
            stderr=stream,
        )
    try:
        wait_until_ready(process, http, log)
        yield Server(http, grpc, log)
    finally:
        process.terminate()
        process.wait(SECONDS)


def environment(http: int = 0, grpc: int = 0, metrics: int = 0) -> dict[str, str]:
    """Variables of a process that has the packages of a server."""
    ports = {"HTTP": http, "GRPC": grpc, "METRICS": metrics}
    return {
        **os.environ,
        "PYTHONPATH": str(SERVERS),
        "MLSERVER_HOST": "127.0.0.1",
        **{f"MLSERVER_{name}_PORT": str(port) for name, port in ports.items()},
    }


def free_ports(count: int) -> list[int]:
    """Ports on which nothing listens."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def wait_until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Return when its models are loaded; raise RuntimeError with its log where it ends first."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready", timeout=5).close()
            # before a model is registered, all of none are ready
            if "Loaded model" in log.read_text():
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise RuntimeError(log.read_text())
