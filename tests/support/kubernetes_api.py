"""A server that answers as much of Kubernetes' API as Snakemake's executor asks.

A job's command runs in a folder of its own, with the environment that its manifest names. What is
missing of a cluster are nodes and containers.
"""

import base64
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import yaml


class Cluster:
    """What was sent to the server, and the processes of jobs by their names."""

    def __init__(self, folder: Path, python_path: str) -> None:
        self.folder = folder
        self.python_path = python_path
        self.secrets: dict[str, dict[str, str]] = {}
        self.manifests: list[dict[str, Any]] = []
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def answer(self, method: str, path: str, body: Any) -> dict[str, Any]:
        """The answer to a request of a client."""
        if method == "POST" and path.endswith("/secrets"):
            self.secrets[body["metadata"]["name"]] = body["data"]
            return body
        if method == "POST" and path.endswith("/jobs"):
            self.start(body)
            return body
        if method == "GET" and (asked := re.search(r"/jobs/([^/]+)/status$", path)):
            return {"metadata": {"name": asked[1]}, "status": self.status(asked[1])}
        if method == "GET" and path.partition("?")[0].endswith("/pods"):
            return {"items": []}
        if method == "DELETE":
            return {"status": "Success"}
        raise NotImplementedError(f"{method} {path}")

    def start(self, manifest: dict[str, Any]) -> None:
        """Run the command of a job."""
        self.manifests.append(manifest)
        name = manifest["metadata"]["name"]
        (container,) = manifest["spec"]["template"]["spec"]["containers"]
        (self.folder / name).mkdir(parents=True)
        with (self.folder / f"{name}.log").open("w") as log:
            self.processes[name] = subprocess.Popen(
                [*container["command"], *container["args"]],
                cwd=self.folder / name,
                env=self.environment(container),
                stdout=log,
                stderr=log,
            )

    def environment(self, container: dict[str, Any]) -> dict[str, str]:
        """Variables of a container; those of the image are where programs and packages are."""
        given = {}
        for one in container["env"]:
            asked = one["valueFrom"]["secretKeyRef"]
            secret = self.secrets[asked["name"]][asked["key"]]
            given[one["name"]] = base64.b64decode(secret).decode()
        programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        # pip installs the storage plugin in each pod, here without what it needs, and from where
        # this machine takes its packages
        image = {"PATH": programs, "PYTHONPATH": self.python_path, "PIP_NO_DEPS": "1"}
        return {**os.environ, **image, **given}

    def status(self, name: str) -> dict[str, int]:
        """The state of a job, as its controller writes it."""
        code = self.processes[name].poll()
        return {"active": 1} if code is None else {"succeeded" if code == 0 else "failed": 1}


@contextmanager
def kubernetes_api(folder: Path, python_path: str) -> Iterator[Cluster]:
    """A running server; its clients read the address in `folder`/kubeconfig."""
    cluster = Cluster(folder / "pods", python_path)

    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            content = json.dumps(cluster.answer(self.command, self.path, body)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = respond

        def log_message(self, *words: Any) -> None:
            """Be quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    write_kubeconfig(folder / "kubeconfig", server.server_port)
    try:
        yield cluster
    finally:
        server.shutdown()
        for process in cluster.processes.values():
            process.kill()


def write_kubeconfig(path: Path, port: int) -> None:
    """The client's settings for the server at this port."""
    context = {"cluster": "tests", "user": "tests"}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "tests", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "tests", "user": {}}],
        "contexts": [{"name": "tests", "context": context}],
        "current-context": "tests",
    }
    path.write_text(yaml.safe_dump(document))
