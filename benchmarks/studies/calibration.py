"""What calibration costs: seconds and peak memory by method and number of samples of 128 tokens.

    taskset -c 0,1 .venv/bin/python benchmarks/studies/calibration.py artifacts/MODEL

The texts of the calibration split are joined until every sample is full, so that none is shorter.
Prints one Markdown table row for each measurement.
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from tightrope.inputs.arrays import Arrays
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.inputs.texts import filled_batch
from tightrope.int8.ranges import collect_statistics
from tightrope.jobs.child import Limits, supervised
from tightrope.machine.cores import intra_op_threads
from tightrope.machine.processes import peak_rss_bytes

TOKENS = 128
PLAN = ("minmax:2048", "percentile:2048", "entropy:2048", "minmax:12000", "entropy:12000")
LIMITS = Limits(memory_bytes=16e9, seconds=3600)


def main() -> None:
    """Measure each method in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--plan", nargs="*", default=PLAN, help="method:samples")
    options = parser.parse_args()
    threads = intra_op_threads("auto")
    print("| method | samples | seconds | peak memory, GB |\n| --- | ---: | ---: | ---: |")
    for words in options.plan:
        method, samples = words.split(":")
        work = (options.model, method, int(samples), threads)
        seconds, peak = supervised(measured, *work, limits=LIMITS)
        print(f"| {method} | {int(samples):,} | {seconds:.0f} | {peak / 1e9:.2f} |", flush=True)


def measured(folder: Path, method: str, samples: int, threads: int) -> tuple[float, int]:
    """Seconds and peak of resident memory, in bytes, of one calibration."""
    rows = full_rows(folder, samples)
    began = time.perf_counter()
    settings = {"method": method, "percentile": 99.99, "threads": threads}
    collect_statistics(folder / "model.simplified.onnx", rows, **settings)
    return time.perf_counter() - began, peak_rss_bytes()


def full_rows(folder: Path, samples: int) -> list[Arrays]:
    """So many samples of exactly TOKENS tokens."""
    encode = load_encoder(folder / "checkpoint/checkpoint.json", max_sequence=TOKENS)
    texts = encode(read_split(folder / "splits/calibration.json"))
    batch = filled_batch(texts, batch=samples, sequence=TOKENS)
    return [{name: array[index] for name, array in batch.items()} for index in range(samples)]


if __name__ == "__main__":
    main()
