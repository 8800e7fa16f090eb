"""Every CPU engine of a model, and what other tools made of it, in one paired run.

    taskset -c 0,1 .venv/bin/python benchmarks/studies/cpu.py artifacts/minilm-docstrings \\
        --peers my/peers --rounds 15 > cpu.json

Takes the engines that `snakemake --cores 1 --configfile config/experiments/all-cpu.yaml` has
built, and with --also further folders of engines. Each engine lives in a process of its own; in
each round each has one block, in an order that turns. Prints JSON: for each shape and engine
seconds a call of each block, the speed-up over PyTorch fp32 and over the fastest peer (95 %
intervals), and the share of the machine's peak, a product of 2048 x 2048 matrices in the same
precision within the same run, for the operations that the engine does.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from operations import operations
from tightrope.artifacts.files import read_json
from tightrope.engines.load import load_engine
from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.encode import timing_batches
from tightrope.jobs.child import Child, Limits
from tightrope.machine.cores import physical_cores, pinned_processors
from tightrope.measure.timed_engine import TimedEngine
from tightrope.plan.job_inputs import from_checkpoint
from tightrope.statistics import speedup
from tightrope.variants import parse

LIMITS = Limits(memory_bytes=16e9, seconds=7200)
SHAPES = [
    {"batch": 1, "sequence": 64},
    {"batch": 1, "sequence": 128},
    {"batch": 1, "sequence": 512},
    {"batch": 16, "sequence": 128},
]
BLOCK_SECONDS = 0.1
SIZE = 2048
BASELINE = "cpu-pytorch-fp32"
PEAKS = ("fp32", "bf16", "int8")
TOO_SLOW_S = 5.0


def engines_in(folder: Path) -> dict[str, Path]:
    """Name and engine.json of each engine in the folder that was built."""
    paths = sorted(folder.glob("engines/*/engine.json"))
    return {path.parent.name: path for path in paths if read_json(path)["status"] == "ok"}


def peers_in(folder: Path | None) -> dict[str, dict[str, Any]]:
    """What peers.json in the folder says of each artifact that was made, by the timed name."""
    if folder is None:
        return {}
    artifacts = read_json(folder / "peers.json")["artifacts"]
    return {f"peer {one['name']}": one for one in artifacts if one["status"] == "ok"}


def load_peer(folder: Path, artifact: dict[str, Any], threads: int) -> Any:
    """`run` of another tool's artifact, with the settings of that tool but for the threads."""
    began = time.perf_counter()
    file, wanted = folder / artifact["file"], artifact["inputs"]
    kinds = {"i64": np.int64, "int64": np.int64, "i32": np.int32, "int32": np.int32}

    def named(inputs: Arrays) -> Arrays:
        given = {"token_type_ids": np.zeros_like(inputs["input_ids"]), **inputs}
        return {name: given[name].astype(kinds[kind], copy=False) for name, kind in wanted.items()}

    if artifact["runtime"] == "openvino":
        import openvino

        settings = {**artifact["settings"]["config"], "INFERENCE_NUM_THREADS": threads}
        program = openvino.Core().compile_model(file, "CPU", settings)

        def run(inputs: Arrays) -> Any:
            return program(named(inputs))[0]
    else:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        # else its idle threads would slow down who is timed next
        options.add_session_config_entry("session.force_spinning_stop", "1")
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])

        def run(inputs: Arrays) -> Any:
            return session.run(None, named(inputs))[0]

    return run, {"import_s": 0.0, "load_s": time.perf_counter() - began}


def load_peak(precision: str, threads: int) -> Any:
    """`run` that multiplies two SIZE x SIZE matrices with oneDNN, weights packed before."""
    import torch

    torch.set_num_threads(threads)
    left, right = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE)
    if precision == "int8":
        left, right = (left * 20).to(torch.uint8), (right * 20).to(torch.int8)
        packed = torch.ops.onednn.qlinear_prepack(right, [SIZE, SIZE])
        scales, points = torch.ones(SIZE), torch.zeros(SIZE, dtype=torch.int64)
        words = (1.0, 0, torch.float32, "none", [], "")
        call = partial(
            torch.ops.onednn.qlinear_pointwise, left, 1.0, 0, packed, scales, points, None, *words
        )
    else:
        if precision == "bf16":
            left, right = left.bfloat16(), right.bfloat16()
        packed = torch.ops.mkldnn._reorder_linear_weight(right, SIZE)
        call = partial(torch.ops.mkldnn._linear_pointwise, left, packed, None, "none", [], "")

    def run(_: Arrays) -> Any:
        with torch.inference_mode():
            return call()

    return run, {"import_s": 0.0, "load_s": 0.0}


def work(
    model: Path,
    peers: dict[str, dict[str, Any]],
    config: dict[str, Any],
    shape: dict[str, int],
    name: str,
) -> float:
    """The operations that the engine of that name does.

    What is built from the simplified ONNX leaves out the rows that nobody reads.
    """
    manifest = model / "engines" / name / "engine.json"
    simplified = peers.get(name, {}).get("made_from") == "model.simplified.onnx"
    if manifest.is_file():
        engine = parse(name).engine
        simplified = not from_checkpoint({engine: read_json(manifest)["options"]}, engine)
    return operations(config, **shape, rows_read=1 if simplified else shape["sequence"])


Load = Callable[[], Any]


def candidates(model: Path, also: list[Path], peers: Path | None, threads: int) -> dict[str, Load]:
    """How each engine, peer and peak is loaded, by name."""
    found: dict[str, Load] = {}
    for folder in (model, *also):
        suffix = "" if folder == model else f" ({folder.parent.parent.name})"
        for name, path in engines_in(folder).items():
            found[name + suffix] = partial(load_engine, path, threads=threads)
    for name, artifact in peers_in(peers).items():
        found[name] = partial(load_peer, peers, artifact, threads)
    return found | {f"peak {kind}": partial(load_peak, kind, threads) for kind in PEAKS}


def in_turns(workers: dict[str, Child], index: int, rounds: int) -> dict[str, list[list[float]]]:
    """Seconds of the calls of each block, one a round and engine; who is too slow is left out."""
    blocks: dict[str, list[list[float]]] = {}
    for name, worker in workers.items():
        try:
            seconds = worker.ask("first_call", index)
            if name.startswith("cpu-tvm") and seconds > TOO_SLOW_S:
                raise WorkFailed(f"too slow: {seconds:.1f} s a call", transient=False)
            worker.ask("warm_up", index, None, 1.0, 0.2)
            blocks[name] = []
        except WorkFailed as error:
            print(f"{name} at {SHAPES[index]}: {error}", file=sys.stderr)
    order = list(blocks)
    for turn in range(rounds):
        shift = turn * 7 % len(order)
        for name in order[shift:] + order[:shift]:
            answer = workers[name].ask("block", index, BLOCK_SECONDS, 1, LIMITS.seconds)
            blocks[name].append(answer["samples_s"])
    return blocks


def rows(blocks: dict[str, list[list[float]]], work: Callable[[str], float]) -> dict[str, Any]:
    """Milliseconds, speed-ups, TFLOP/s and share of the peak of each engine at one shape.

    `work` gives the operations that the engine of a name does.
    """
    medians = {
        name: statistics.median(statistics.fmean(block) for block in own)
        for name, own in blocks.items()
    }
    rivals = [name for name in blocks if name.startswith("peer ")]
    best = min(rivals, key=medians.__getitem__, default=None)
    peaks = {kind: 2 * SIZE**3 / medians[f"peak {kind}"] for kind in PEAKS}
    found: dict[str, Any] = {
        "peaks_tflops": {k: v / 1e12 for k, v in peaks.items()},
        "best_peer": best,
    }
    for name, own in blocks.items():
        if name.startswith("peak "):
            continue
        entry: dict[str, Any] = {
            "ms": 1e3 * medians[name],
            "tflops": work(name) / medians[name] / 1e12,
        }
        kind = next((p for p in ("int8", "bf16") if p in name.partition(" (")[0]), "fp32")
        entry["share"] = 1e12 * entry["tflops"] / peaks[kind]
        for word, rival in (("speedup", BASELINE), ("over_best_peer", best)):
            if rival is not None:
                ratio = speedup(own, blocks[rival])
                entry[word] = [ratio.value, ratio.low, ratio.high]
        found[name] = entry
    return found


def main() -> None:
    """One JSON document for the model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--also", type=Path, nargs="*", default=[])
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="words of which one is in the names")
    options = parser.parse_args()
    threads = physical_cores()
    processors = pinned_processors(threads)
    files = (options.model / "checkpoint/checkpoint.json", options.model / "splits/timing.json")
    batches = timing_batches(*files, SHAPES, max_sequence=128)
    config = read_json(options.model / "checkpoint/config.json")
    peers = peers_in(options.peers)
    loads = candidates(options.model, options.also, options.peers, threads)
    words = [BASELINE, "peak ", *options.only.split(",")] if options.only else [""]
    document: dict[str, Any] = {"threads": threads, "rounds": options.rounds, "load_s": {}}
    with ExitStack() as stack:
        workers = {}
        for name, load in loads.items():
            if any(word in name for word in words):
                engine = TimedEngine(load, batches, processors)
                workers[name] = stack.enter_context(Child(engine, LIMITS))
                began = time.perf_counter()
                document["load_s"][name] = workers[name].ask("load")["load_s"]
                print(f"{name}: {time.perf_counter() - began:.1f} s", file=sys.stderr)
        for index, shape in enumerate(SHAPES):
            blocks = in_turns(workers, index, options.rounds)
            key = f"{shape['batch']}x{shape['sequence']}"
            document[key] = rows(blocks, partial(work, options.model, peers, config, shape))
            print(f"{key} done", file=sys.stderr)
        document["peak_rss_bytes"] = {n: w.ask("peak_rss_bytes") for n, w in workers.items()}
    json.dump(document, sys.stdout, indent=1)


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main()
