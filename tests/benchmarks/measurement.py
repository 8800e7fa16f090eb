"""Is what measure_latency says true? Each proof prints one row of a Markdown table.

    taskset -c 0,1 .venv/bin/python tests/benchmarks/measurement.py clock
    ... measurement.py same [--foreign] [--engine cpu-pytorch-fp32]
    ... measurement.py planted --percent 5 [--width 0.05]
    ... measurement.py runs earlier/summary.json later/summary.json

On a machine with nothing else to do. `same` takes an engine that the default run has built, and
loads it anew for each comparison. docs/measurement.md says what is shown.
"""

import argparse
import hashlib
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from tightrope.comparison import compare
from tightrope.config import checked
from tightrope.cores import physical_cores, pinned_processors
from tightrope.inputs import timing_batches
from tightrope.loading import load_engine
from tightrope.records import LatencyRecord
from tightrope.results import latency_entry
from tightrope.supervise import Child, Limits
from tightrope.timed_engine import TimedEngine
from tightrope.two_loads import compare_loads

MODEL = Path("artifacts/minilm-docstrings")
SHAPE = {"batch": 1, "sequence": 64}
LIMITS = Limits(memory_bytes=8e9, seconds=3600)
DATA = bytes(16 << 10)
# half of the time busy, in turns of a length that is no multiple of a block's
HALF_BUSY = """
import time
while True:
    end = time.perf_counter() + 0.37
    while time.perf_counter() < end:
        pass
    time.sleep(0.37)
"""


def busy_wait(seconds: float) -> None:
    """Come back when so much time is over."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def hash_blocks(count: int) -> None:
    """A fixed amount of work on one core: `count` times the SHA-256 of 16 KiB."""
    for _ in range(count):
        hashlib.sha256(DATA).digest()


def plan(**changes: Any) -> dict[str, Any]:
    """`latency` of the default configuration, with changes."""
    config = yaml.safe_load(Path("config/config.yaml").read_text())
    return checked(config, "config/schema.yaml")["latency"] | changes


def compared(
    loads: list[Callable[[], Any]], inputs: list[Any], threads: int, settings: dict[str, Any]
) -> dict[str, Any]:
    """The summary's latency row of one comparison of fresh workers, and its seconds."""
    processors = pinned_processors(threads)
    engines = {
        role: TimedEngine(load, [one], processors)
        for role, load, one in zip(("", "baseline "), loads, inputs, strict=True)
    }
    (compared,), _ = compare_loads(engines, settings, threads, LIMITS)
    shape = {**SHAPE, **compared}
    identity = {"model": "m", "variant": "v", "host": {}, "libraries": {}}
    facts = {"threads": threads, "plan": settings, "processors": processors}
    return {**latency_entry(shape, LatencyRecord(**identity, **facts)), "seconds": shape["seconds"]}


def report(name: str, rows: list[dict[str, Any]], truth: float) -> None:
    """Print what came out of many comparisons whose true speed-up is `truth`."""
    verdicts = Counter(row["speedup"]["verdict"] for row in rows)
    excused = sum(row["speedup"]["verdict"] != "tie" and row["noisy"] for row in rows)
    held = sum(row["speedup"]["low"] <= truth <= row["speedup"]["high"] for row in rows)
    widths = [
        (row["speedup"]["high"] - row["speedup"]["low"]) / row["speedup"]["ratio"] for row in rows
    ]
    cells = [
        name,
        len(rows),
        *(verdicts[word] for word in ("faster", "slower", "tie")),
        excused,
        held,
        f"{statistics.median(row['speedup']['ratio'] for row in rows):.4f}",
        f"{statistics.median(widths):.3f}",
        sum(row["stop"] == "width" for row in rows),
        sum(row["noisy"] for row in rows),
        sum(row["hit_pairs"] for row in rows),
        f"{statistics.median(row['seconds'] for row in rows):.1f}",
        f"{max(row['seconds'] for row in rows):.1f}",
    ]
    head = (
        "proof | comparisons | faster | slower | tie | noisy and no tie | truth in the interval | "
        "median ratio | median width | stopped by width | noisy | hit pairs | median s | most s"
    )
    print(f"| {head} |\n|{' --- |' * len(cells)}")
    print(f"| {' | '.join(map(str, cells))} |")


def clock(_: argparse.Namespace) -> None:
    """Engines that are busy for a known time: what is measured, and what a call costs more."""
    print("| busy | measured, median | off by |\n| ---: | ---: | ---: |")
    for seconds in (5e-6, 1e-3, 50e-3):
        timed = TimedEngine(lambda: (busy_wait, {}), [seconds], pinned_processors(1))
        with Child(timed, LIMITS) as worker:
            worker.ask("load")
            shape = compare([worker], 0, plan(), 1)
        median = statistics.median(sample for block in shape["blocks_s"] for sample in block)
        off = median - seconds
        words = f"{off * 1e6:.2f} µs ({100 * off / seconds:.2f} %)"
        print(f"| {seconds * 1e6:g} µs | {median * 1e6:.2f} µs | {words} |", flush=True)


def same(options: argparse.Namespace) -> None:
    """An engine against itself: all but one in twenty should be a tie."""
    threads = physical_cores()
    files = (MODEL / "checkpoint/checkpoint.json", MODEL / "data/data.json")
    (batch,) = timing_batches(*files, [SHAPE], max_sequence=128)
    engine = MODEL / f"engines/{options.engine}/engine.json"
    load = partial(load_engine, engine, threads=threads)
    with foreign_load(pinned_processors(threads)[0]) if options.foreign else ExitStack():
        rows = [
            compared([load, load], [batch, batch], threads, plan()) for _ in range(options.count)
        ]
    report(f"same, {options.engine}{', foreign load' * options.foreign}", rows, 1.0)


def planted(options: argparse.Namespace) -> None:
    """An engine that does so many percent less work than its baseline."""
    fewer, more = 2000, 2000 + 20 * options.percent
    loads = [lambda: (hash_blocks, {})] * 2
    settings = plan(width=options.width)
    rows = [compared(loads, [fewer // 10, more // 10], 1, settings) for _ in range(options.count)]
    report(f"planted +{options.percent} %, width {options.width}", rows, more / fewer)


def runs(options: argparse.Namespace) -> None:
    """How the verdicts and speed-ups of two whole runs differ."""
    first, second = (
        {
            (result["variant"], row["batch"], row["sequence"]): row["speedup"]
            for result in json.loads(path.read_text())["results"]
            for row in result["latency"]
            if row["speedup"]
        }
        for path in (options.earlier, options.later)
    )
    both = [(first[key], second[key]) for key in first.keys() & second.keys()]
    moves = [{one["verdict"], other["verdict"]} for one, other in both]
    changes = sorted(abs(math.log(other["ratio"] / one["ratio"])) for one, other in both)
    apart = sum(one["low"] > other["high"] or other["low"] > one["high"] for one, other in both)
    print("| speed-ups in both | flips | to or from tie | median change | most | intervals apart |")
    print(f"|{' --- |' * 6}")
    cells = [
        len(both),
        moves.count({"faster", "slower"}),
        sum(len(move) == 2 and "tie" in move for move in moves),
        *(f"{100 * change:.1f} %" for change in (statistics.median(changes), changes[-1])),
        apart,
    ]
    print(f"| {' | '.join(map(str, cells))} |")


@contextmanager
def foreign_load(processor: int) -> Any:
    """Another program that keeps `processor` busy for half of the time."""
    process = subprocess.Popen([sys.executable, "-c", HALF_BUSY])
    os.sched_setaffinity(process.pid, {processor})
    try:
        yield
    finally:
        process.kill()
        process.wait()


def main() -> None:
    """Run the proof that is named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    proofs = parser.add_subparsers(required=True)
    proofs.add_parser("clock").set_defaults(proof=clock)
    equal = proofs.add_parser("same")
    equal.add_argument("--foreign", action="store_true")
    equal.add_argument("--engine", default="cpu-onnxruntime-fp32")
    equal.set_defaults(proof=same)
    different = proofs.add_parser("planted")
    different.add_argument("--percent", type=int, default=5)
    different.add_argument("--width", type=float, default=plan()["width"])
    different.set_defaults(proof=planted)
    repeated = proofs.add_parser("runs")
    repeated.add_argument("earlier", type=Path)
    repeated.add_argument("later", type=Path)
    repeated.set_defaults(proof=runs)
    for one in (equal, different):
        one.add_argument("--count", type=int, default=100)
    options = parser.parse_args()
    options.proof(options)


if __name__ == "__main__":
    main()
