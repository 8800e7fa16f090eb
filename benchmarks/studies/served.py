"""A bundle behind MLServer, paired with its `predict` in one process.

    PYTHONPATH=.venv/servers .venv/bin/python benchmarks/studies/served.py \\
        artifacts/MODEL/bundle/VARIANT.mlserver.tar.gz artifacts/MODEL/splits/evaluation.json

Unpacks the bundle, starts MLServer on it and sends every text of the split, one per request and 16
per request, by one client and by 8 at once; the clients are threads of this process, on the same
processors. `predict` gets the same requests from as many threads of this process. In each round
each has its turn, after one that is not counted. Prints a Markdown table: labels equal to those on
record, 50th and 99th percentile of the seconds of a request, and requests per second.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import local

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from tightrope.inputs.encode import read_split

SIZES, CLIENTS = (1, 16), (1, 8)
PROGRAM = "from mlserver.cli import main; main()"
SECONDS = 120
Ask = Callable[[list[str]], list[str]]


@dataclass
class Measured:
    """Labels of the last round, seconds of each request, and seconds of all rounds."""

    labels: list[str] = field(default_factory=list)
    request_s: list[float] = field(default_factory=list)
    total_s: float = 0.0


def main() -> None:
    """Print a row per size of a request, number of clients, and place."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("archive", type=Path)
    parser.add_argument("split", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    texts = [one["text"] for one in read_split(options.split)]
    with TemporaryDirectory() as parent, tarfile.open(options.archive) as archive:
        archive.extractall(parent)
        folder = Path(parent) / archive.getnames()[0].partition("/")[0]
        with serving(folder) as over_http:
            places = {"predict": in_process(folder), "MLServer": over_http}
            print_rows(places, texts, on_record(folder), options.rounds)


def print_rows(places: dict[str, Ask], texts: list[str], expected: list[str], rounds: int) -> None:
    """Measure all and print the table."""
    print(
        "| texts per request | clients | | labels as on record | p50, ms | p99, ms | requests/s |"
    )
    print("| ---: | ---: | --- | ---: | ---: | ---: | ---: |")
    for size in SIZES:
        requests = [texts[at : at + size] for at in range(0, len(texts), size)]
        for clients in CLIENTS:
            for place, one in measure(places, requests, clients, rounds).items():
                equal = sum(a == b for a, b in zip(one.labels, expected, strict=False))
                median, high = 1e3 * np.percentile(one.request_s, [50, 99])
                print(
                    f"| {size} | {clients} | {place} | {equal:,} of {len(one.labels):,} | "
                    f"{median:.2f} | {high:.2f} | {len(one.request_s) / one.total_s:.1f} |",
                    flush=True,
                )


def measure(
    places: dict[str, Ask], requests: Sequence[list[str]], clients: int, rounds: int
) -> dict[str, Measured]:
    """Send all requests to each place in each round; the first round is not counted."""
    found = {place: Measured() for place in places}
    for number in range(rounds + 1):
        for place, ask in places.items():
            labels, request_s, total_s = sent(ask, requests, clients)
            if number > 0:
                one = found[place]
                one.labels = labels
                one.request_s += request_s
                one.total_s += total_s
    return found


def sent(
    ask: Ask, requests: Sequence[list[str]], clients: int
) -> tuple[list[str], list[float], float]:
    """Return the labels, the seconds of each request, and the seconds of all."""

    def timed(texts: list[str]) -> tuple[list[str], float]:
        began = time.perf_counter()
        labels = ask(texts)
        return labels, time.perf_counter() - began

    with ThreadPoolExecutor(clients) as pool:
        began = time.perf_counter()
        answers = list(pool.map(timed, requests))
        total = time.perf_counter() - began
    return [label for labels, _ in answers for label in labels], [s for _, s in answers], total


def on_record(folder: Path) -> list[str]:
    """Return the labels that the variant predicted for the split when it was measured."""
    labels = json.loads((folder / "bundle.json").read_text())["labels"]
    record = json.loads((folder / "record/accuracy.json").read_text())
    return [labels[one] for one in record["predictions"]]


def in_process(folder: Path) -> Ask:
    """Return what asks the bundle's own `predict` in this process."""
    sys.path.insert(0, str(folder))
    from predict import load

    predict = load()
    return lambda texts: [one["label"] for one in predict(texts)]


@contextmanager
def serving(folder: Path) -> Iterator[Ask]:
    """Yield what asks MLServer, which ends with the context; each thread keeps its connection."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        ports = [one.getsockname()[1] for one in sockets]
    names = ("MLSERVER_HTTP_PORT", "MLSERVER_GRPC_PORT", "MLSERVER_METRICS_PORT")
    environment = dict(zip(names, map(str, ports), strict=True)) | {"MLSERVER_HOST": "127.0.0.1"}
    log = folder.parent / "log"
    with log.open("w") as stream:
        server = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "start", "."],
            cwd=folder,
            env={**os.environ, **environment},
            stdout=stream,
            stderr=stream,
        )
    try:
        wait_for(server, log)
        yield over_http(ports[0], f"/v2/models/{folder.name}/infer")
    finally:
        server.terminate()
        server.wait()


def wait_for(server: subprocess.Popen[bytes], log: Path) -> None:
    """Return when the model is loaded; raise RuntimeError with the log where it is not."""
    end = time.monotonic() + SECONDS
    while "Loaded model" not in log.read_text():
        if server.poll() is not None or time.monotonic() > end:
            raise RuntimeError(log.read_text())
        time.sleep(0.1)


def over_http(port: int, path: str) -> Ask:
    """Return what sends texts and returns their labels."""
    kept = local()

    def ask(texts: list[str]) -> list[str]:
        if not hasattr(kept, "connection"):
            kept.connection = HTTPConnection("127.0.0.1", port, timeout=SECONDS)
        tensor = {"name": "text", "datatype": "BYTES", "shape": [len(texts)], "data": texts}
        body = json.dumps({"inputs": [tensor]})
        kept.connection.request("POST", path, body, {"Content-Type": "application/json"})
        answer = json.loads(kept.connection.getresponse().read())
        return answer["outputs"][0]["data"]

    return ask


if __name__ == "__main__":
    main()
