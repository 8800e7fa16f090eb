"""The same engine, timed by measure_latency's own code and by the tool that its users know.

    taskset -c 0,1 .venv/bin/python tests/benchmarks/peers.py [--rounds 20]

OpenVINO against benchmark_app (no hint, one stream, synchronous), ONNX Runtime against a bare loop.
In turn, each in a process of its own that is new in every round, on the same processors, with the
same inputs. Prints one row of a Markdown table for each: the ratio of the medians, tool over ours,
with its 95 % interval over the rounds. Takes engines that the default run has built.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from measurement import LIMITS, MODEL, plan
from tightrope.comparison import compare
from tightrope.cores import physical_cores, pinned_processors
from tightrope.inputs import Arrays, timing_batches
from tightrope.loading import load_engine
from tightrope.statistics import speedup
from tightrope.supervise import Child
from tightrope.timed_engine import TimedEngine

SECONDS = 2.0
ENGINES = ("cpu-openvino-fp32", "cpu-openvino-int8-nncf-512", "cpu-onnxruntime-fp32")
SHAPES = [{"batch": 1, "sequence": 64}, {"batch": 1, "sequence": 128}]
BARE_LOOP = """
import statistics, sys, time
import numpy, onnxruntime

path, threads, seconds, folder = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = threads
session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
inputs = {one.name: numpy.load(f"{folder}/{one.name}.npy") for one in session.get_inputs()}
for _ in range(20):
    session.run(None, inputs)
samples, end = [], time.perf_counter() + seconds
while time.perf_counter() < end:
    began = time.perf_counter()
    session.run(None, inputs)
    samples.append(time.perf_counter() - began)
print(statistics.median(samples))
"""


def ours(engine: str, batch: Arrays, threads: int) -> float:
    """Median seconds of a call as measure_latency times it, on a fresh process."""
    load = partial(load_engine, MODEL / f"engines/{engine}/engine.json", threads=threads)
    timed = TimedEngine(load, [batch], pinned_processors(threads))
    with Child(timed, LIMITS) as worker:
        worker.ask("load")
        worker.ask("first_call", 0)
        shape = compare([worker], 0, plan(min_seconds=SECONDS), threads)
    return statistics.median(sample for block in shape["blocks_s"] for sample in block)


def benchmark_app(engine: str, batch: Arrays, threads: int) -> float:
    """Median seconds of a call as OpenVINO's benchmark_app says."""
    with tempfile.TemporaryDirectory() as folder:
        save(batch, folder)
        shape = ",".join(str(size) for size in batch["input_ids"].shape)
        words = [
            *(f"{Path(sys.executable).parent}/benchmark_app", "-d", "CPU", "-hint", "none"),
            *("-m", str(MODEL / f"engines/{engine}/model.xml"), "-infer_precision", "f32"),
            *("-nstreams", "1", "-nthreads", str(threads), "-api", "sync", "-t", f"{SECONDS:.0f}"),
            *("-data_shape", ",".join(f"{name}[{shape}]" for name in batch)),
            *("-i", *(f"{name}:{folder}/{name}.npy" for name in batch)),
            *("-json_stats", "-report_type", "no_counters", "-report_folder", folder),
        ]
        run(words, threads)
        found = json.loads(Path(folder, "benchmark_report.json").read_text())
        return float(found["execution_results"]["latency (ms)"]) / 1e3


def bare_loop(engine: str, batch: Arrays, threads: int) -> float:
    """Median seconds of a call in a loop around onnxruntime, its options left alone."""
    with tempfile.TemporaryDirectory() as folder:
        save(batch, folder)
        path = MODEL / f"engines/{engine}/model.onnx"
        words = [sys.executable, "-c", BARE_LOOP, str(path), str(threads), str(SECONDS), folder]
        return float(run(words, threads))


def save(batch: Arrays, folder: str) -> None:
    """Each input as a .npy file of its name."""
    for name, array in batch.items():
        np.save(Path(folder, name), array)


def run(words: list[str], threads: int) -> str:
    """What the command prints, on the processors that measure_latency would take."""
    processors = set(pinned_processors(threads))
    pin = partial(os.sched_setaffinity, 0, processors)
    done = subprocess.run(words, capture_output=True, text=True, check=False, preexec_fn=pin)
    if done.returncode:
        sys.exit(f"{words[0]} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def main() -> None:
    """One row for each engine and shape."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    threads = physical_cores()
    files = (MODEL / "checkpoint/checkpoint.json", MODEL / "data/data.json")
    batches = timing_batches(*files, SHAPES, max_sequence=128)
    print("| engine | shape | ours, ms | tool, ms | tool / ours | 95 % interval |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    order = random.Random(0)
    for engine in ENGINES:
        theirs: Callable[..., float] = benchmark_app if "openvino" in engine else bare_loop
        for shape, batch in zip(SHAPES, batches, strict=True):
            found: dict[Callable[..., float], list[list[float]]] = {ours: [], theirs: []}
            for _ in range(rounds):
                for timer in order.sample([ours, theirs], 2):
                    found[timer].append([timer(engine, batch, threads)])
            medians = [statistics.median(one for (one,) in found[t]) * 1e3 for t in found]
            ratio = speedup(found[ours], found[theirs])
            size = f"{shape['batch']} by {shape['sequence']}"
            words = f"{medians[0]:.2f} | {medians[1]:.2f} | {ratio.value:.3f}"
            interval = f"{ratio.low:.3f} to {ratio.high:.3f}"
            print(f"| {engine} | {size} | {words} | {interval} |", flush=True)


if __name__ == "__main__":
    main()
