"""What an engine holds in memory after each shape that it is asked for, beside other tools' models.

    .venv/bin/python benchmarks/studies/memory.py artifacts/minilm-docstrings --peers my/peers \\
        --only openvino,int8-dynamic

Each engine is loaded in a process of its own, and called at one shape after another. Prints a
Markdown table: resident memory after loading and after each shape, MB, the interpreter included,
and the seconds from the engine's files to the first answer; the medians of `--runs`.
"""

import argparse
import statistics
import sys
import time
from functools import partial
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from cpu import LIMITS, SHAPES, Load, candidates
from tightrope.inputs.encode import timing_batches
from tightrope.jobs.child import Child
from tightrope.machine.cores import physical_cores, pinned_processors
from tightrope.measure.timed_engine import TimedEngine


class WithMemory(TimedEngine):
    """An engine in a child that also tells its resident memory."""

    def resident_bytes(self) -> int:
        """Resident memory of this process now."""
        return int(psutil.Process().memory_info().rss)


def main() -> None:
    """Print a row for each engine, peers last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--peers", type=Path, default=None)
    parser.add_argument("--only", default="", help="words of which one is in the names")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    threads = physical_cores()
    files = (options.model / "checkpoint/checkpoint.json", options.model / "splits/timing.json")
    batches = timing_batches(*files, SHAPES, max_sequence=128)
    of = partial(WithMemory, inputs=batches, processors=pinned_processors(threads))
    names = " | ".join(f"{one['batch']}x{one['sequence']}" for one in SHAPES)
    print(f"| engine | loaded | {names} | s |\n| --- |{' ---: |' * (len(SHAPES) + 2)}")
    for name, load in candidates(options.model, [], options.peers, threads).items():
        if name.startswith("peak") or not any(one in name for one in options.only.split(",")):
            continue
        runs = [after_each_shape(of, load) for _ in range(options.runs)]
        held, seconds = zip(*runs, strict=True)
        columns = [f"{statistics.median(run) / 1e6:.0f}" for run in zip(*held, strict=True)]
        print(
            f"| `{name}` | {' | '.join(columns)} | {statistics.median(seconds):.1f} |", flush=True
        )


def after_each_shape(of: partial[WithMemory], load: Load) -> tuple[list[int], float]:
    """Bytes held after loading and after each shape, and seconds to the first answer."""
    with Child(of(load), LIMITS) as worker:
        began = time.perf_counter()
        worker.ask("load")
        held = [worker.ask("resident_bytes")]
        first = 0.0
        for index in range(len(SHAPES)):
            worker.ask("first_call", index)
            first = first or time.perf_counter() - began
            held.append(worker.ask("resident_bytes"))
    return held, first


if __name__ == "__main__":
    main()
