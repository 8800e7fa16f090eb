"""The same engine, timed by measure_latency's own code and by the tool that its users know.

    taskset -c 0,1 .venv/bin/python benchmarks/studies/peers.py [--rounds 12]

OpenVINO against benchmark_app (no hint, one stream, synchronous), ONNX Runtime against a bare loop:
same processors, same inputs, each in a process of its own that is new in every round. The two take
turns, the tool stopped (SIGSTOP) while ours is timed, so that both see the same changes of the
machine. Prints one row of a Markdown table for each: the ratio of the medians, tool over ours, with
its 95 % interval over the rounds. benchmark_app shows the own clock of a request of OpenVINO, which
leaves out what a call from Python costs: so our calls are read on that clock too (`alike`), beside
the whole call (`ours`). Takes engines that the default run has built.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from measurement import LIMITS, MODEL
from tightrope.engines.load import load_engine
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.encode import timing_batches
from tightrope.jobs.child import Child
from tightrope.machine.cores import physical_cores, pinned_processors
from tightrope.measure.timed_engine import TimedEngine
from tightrope.statistics import speedup
from tightrope.variants import parse

SECONDS = 3.0
# long beside a call: the one that the stop cuts in two looks slow
TURN_SECONDS = 0.3
STARTED = "Measuring performance"
ENGINES = ("cpu-openvino-fp32", "cpu-openvino-int8-nncf-512", "cpu-onnxruntime-fp32")
SHAPES = [{"batch": 1, "sequence": 64}, {"batch": 1, "sequence": 128}]
BARE_LOOP = f"""
import statistics, sys, time
import numpy, onnxruntime

path, threads, calls, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = threads
session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
inputs = {{one.name: numpy.load(f"{{folder}}/{{one.name}}.npy") for one in session.get_inputs()}}
for _ in range(20):
    session.run(None, inputs)
print("{STARTED}", flush=True)
samples = []
for _ in range(calls):
    began = time.perf_counter()
    session.run(None, inputs)
    samples.append(time.perf_counter() - began)
print(statistics.median(samples))
"""


class Noting(TimedEngine):
    """A timed engine of OpenVINO that keeps what the request's own clock says of each call."""

    def load(self) -> None:
        """Load the engine on its processors, with its request at hand."""
        os.sched_setaffinity(0, self.processors)
        self.request = self.loader()
        self.own_s: list[float] = []
        self.run = self.noted

    def noted(self, inputs: Arrays) -> Any:
        """A call as that of the engine's own `run`."""
        self.request.infer(inputs, share_inputs=True)
        self.own_s.append(self.request.latency / 1e3)
        return self.request.get_output_tensor(0).data.copy()

    def own_clock(self) -> list[float]:
        """Seconds of all calls so far by that clock."""
        return self.own_s


def side_by_side(
    engine: str, batch: Arrays, threads: int, calls: int, tool_first: bool
) -> tuple[float, float, float]:
    """Median seconds of a call by measure_latency's own code, by what the tool counts, by the tool.

    The tool makes so many `calls`. What it counts is the request's own clock for OpenVINO.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        for name, array in batch.items():
            np.save(Path(folder, name), array)
        worker = stack.enter_context(Child(timed(engine, batch, threads), LIMITS))
        if not tool_first:
            warm_up(worker)
        tool = stack.enter_context(started(command(engine, batch, threads, calls, folder), threads))
        stack.callback(tool.kill)
        tool.send_signal(signal.SIGSTOP)
        if tool_first:
            warm_up(worker)
        samples: list[float] = []
        while tool.poll() is None:
            samples += worker.ask("block", 0, TURN_SECONDS, 1, LIMITS.seconds)["samples_s"]
            tool.send_signal(signal.SIGCONT)
            with suppress(subprocess.TimeoutExpired):
                tool.wait(TURN_SECONDS)
            tool.send_signal(signal.SIGSTOP)
        printed = tool.stdout.read()
        if tool.returncode:
            sys.exit(f"{tool.args[0]} failed:\n{printed}")
        if "openvino" in engine:
            stats = json.loads(Path(folder, "benchmark_report.json").read_text())
            theirs = float(stats["execution_results"]["latency (ms)"]) / 1e3
            alike = worker.ask("own_clock")[-len(samples) :]
        else:
            theirs, alike = float(printed), samples
        return statistics.median(samples), statistics.median(alike), theirs


def timed(engine: str, batch: Arrays, threads: int) -> TimedEngine:
    """The engine as measure_latency times it."""
    path, processors = MODEL / f"engines/{engine}", pinned_processors(threads)
    if "openvino" in engine:
        return Noting(partial(new_request, path, threads), [batch], processors)
    load = partial(load_engine, path / "engine.json", threads=threads)
    return TimedEngine(load, [batch], processors)


def new_request(path: Path, threads: int) -> Any:
    """A request of the engine of OpenVINO in that folder, for any shape."""
    from tightrope.engines.openvino import Programs

    programs = Programs(path, parse(path.name).precision, threads, {})
    return programs.program(None).create_infer_request()


def warm_up(worker: Child) -> float:
    """Load the engine and call it until it is warm; seconds of a call."""
    worker.ask("load")
    worker.ask("first_call", 0)
    worker.ask("warm_up", 0, 20, LIMITS.seconds, TURN_SECONDS)
    return statistics.median(worker.ask("block", 0, TURN_SECONDS, 1, LIMITS.seconds)["samples_s"])


def command(engine: str, batch: Arrays, threads: int, calls: int, folder: str) -> list[str]:
    """The tool's command line: so many `calls` with the inputs in `folder`."""
    path = MODEL / f"engines/{engine}"
    if "openvino" not in engine:
        model = str(path / "model.onnx")
        return [sys.executable, "-c", BARE_LOOP, model, str(threads), str(calls), folder]
    shape = ",".join(str(size) for size in batch["input_ids"].shape)
    return [
        *(f"{Path(sys.executable).parent}/benchmark_app", "-d", "CPU", "-hint", "none"),
        *("-m", str(path / "model.xml"), "-infer_precision", "f32"),
        *("-nstreams", "1", "-nthreads", str(threads), "-api", "sync", "-niter", str(calls)),
        *("-data_shape", ",".join(f"{name}[{shape}]" for name in batch)),
        *("-i", *(f"{name}:{folder}/{name}.npy" for name in batch)),
        *("-json_stats", "-report_type", "no_counters", "-report_folder", folder),
    ]


def started(words: list[str], threads: int) -> subprocess.Popen[str]:
    """The tool, on the processors that measure_latency would take, once it has begun to time."""
    tool = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=partial(os.sched_setaffinity, 0, pinned_processors(threads)),
    )
    printed = []
    for line in tool.stdout:
        if STARTED in line:
            return tool
        printed.append(line)
    sys.exit(f"{words[0]} failed:\n{''.join(printed)}")


def main() -> None:
    """One row for each engine and shape."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=12)
    rounds = parser.parse_args().rounds
    threads = physical_cores()
    files = (MODEL / "checkpoint/checkpoint.json", MODEL / "splits/timing.json")
    batches = timing_batches(*files, SHAPES, max_sequence=128)
    print("| engine | shape | ours, ms | alike, ms | tool, ms | tool / alike | 95 % interval |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for engine in ENGINES:
        for shape, batch in zip(SHAPES, batches, strict=True):
            with Child(timed(engine, batch, threads), LIMITS) as worker:
                calls = round(SECONDS / warm_up(worker))
            found = [
                side_by_side(engine, batch, threads, calls, bool(turn % 2))
                for turn in range(rounds)
            ]
            ratio = speedup([[alike] for _, alike, _ in found], [[tool] for *_, tool in found])
            size = f"{shape['batch']} by {shape['sequence']}"
            columns = zip(*found, strict=True)
            medians = (f"{statistics.median(column) * 1e3:.2f}" for column in columns)
            interval = f"{ratio.low:.3f} to {ratio.high:.3f}"
            cells = [engine, size, *medians, f"{ratio.value:.3f}", interval]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
