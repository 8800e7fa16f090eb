"""Tables of what was measured on a GPU: times, and the share of the card's own peak.

    snakemake --cores 1 --configfile config/experiments/bert.yaml
    .venv/bin/python benchmarks/studies/gpu.py reports/summary.json [--single other/summary.json]

Prints Markdown: the peaks of this GPU, products of 8192 x 8192 matrices by cuBLAS, and for each
model and variant seconds a call, samples a second, the speed-up, and the share of the
peak for the operations that the variant does. `--single` is the summary of the same run with
`--config 'cuda={graphs: false}'`: then the share of a call that the host's launches cost, which is
what is saved by a CUDA graph.
"""

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from operations import operations
from tightrope.artifacts.files import read_json
from tightrope.machine.host import describe_host
from tightrope.terminal.decision import size_label

SIZE, CALLS = 8192, 20
TYPES = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
}
ON_CPU = ("fp32", "bf16")
# what is built from the simplified ONNX computes of the last layer only what the classifier reads
SIMPLIFIED = ("onnxruntime", "tensorrt")
COLUMNS = (
    "model",
    "variant",
    "shape",
    "ms",
    "on the GPU, ms",
    "samples/s",
    "speed-up",
    "of peak",
    "launches",
)
Rows = dict[tuple[str, str, str], dict[str, Any]]


def peaks(device: str = "cuda", size: int = SIZE) -> dict[str, float]:
    """Operations a second of products of size x size matrices, by precision.

    On a GPU of the largest that matter; on a CPU in fp32 and bf16.
    """
    found = {}
    for precision, kind in TYPES.items():
        if device == "cpu" and precision not in ON_CPU:
            continue
        torch.backends.fp32_precision = "tf32" if precision == "tf32" else "ieee"
        left, right = (torch.randn(size, size, device=device, dtype=kind) for _ in range(2))
        found[precision] = 2 * size**3 / seconds_of(partial(torch.mm, left, right), device)
    if device == "cuda":
        eighths = [torch.randint(-99, 99, (size, size), device=device).to(torch.int8) for _ in "ab"]
        narrow = partial(torch._int_mm, eighths[0], eighths[1].t().contiguous().t())
        found["int8"] = 2 * size**3 / seconds_of(narrow, device)
    return found


def seconds_of(call: Callable[[], Any], device: str) -> float:
    """The least seconds of a call, by events of the GPU, on a CPU by the clock."""
    times = []
    for _ in range(CALLS if device == "cpu" else 0):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    for _ in range(CALLS if device == "cuda" else 0):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        call()
        last.record()
        torch.cuda.synchronize()
        times.append(first.elapsed_time(last) / 1e3)
    return min(times)


def rows_of(path: Path) -> Rows:
    """Each shape of each variant on a GPU that was measured, by model, variant and shape."""
    return {
        (one["model"], one["variant"], size_label(row)): {**one, **row}
        for one in read_json(path)["results"]
        if one["device"] == "cuda"
        for row in one["latency"]
    }


def share(row: dict[str, Any], peak: dict[str, float]) -> str:
    """What of the peak in its precision a call reaches, of the operations that it does.

    A dash for images, whose operations are not counted.
    """
    if "sequence" not in row:
        return "-"
    config = read_json(Path("artifacts", row["model"], "checkpoint/config.json"))
    read = 1 if row["engine"] in SIMPLIFIED else row["sequence"]
    work = operations(config, row["batch"], row["sequence"], read)
    best = peak.get(row["precision"].partition("-")[0])
    return f"{work / row['mean_s'] / best:.0%}" if best else "-"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("summary", type=Path)
    parser.add_argument("--single", type=Path, help="summary of the run without CUDA graphs")
    chosen = parser.parse_args()
    rows, peak = rows_of(chosen.summary), peaks()
    single = rows_of(chosen.single) if chosen.single else {}
    host = describe_host()
    print(f"{host['gpu']}, driver {host['driver']}, PyTorch {torch.__version__}\n")
    print(", ".join(f"{name} {value / 1e12:.0f} TFLOP/s" for name, value in peak.items()), "\n")
    print(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * 3}{' ---: |' * (len(COLUMNS) - 3)}")
    for key, row in rows.items():
        faster = f"{row['speedup']['ratio']:.2f}x" if row["speedup"] else "1"
        device = f"{row['device_p50_s'] * 1e3:.3f}" if row["device_p50_s"] else "-"
        other = single.get(key)
        launches = f"{1 - row['mean_s'] / other['mean_s']:.0%}" if other else "-"
        print(
            f"| {key[0]} | `{key[1]}` | {key[2]} | {row['mean_s'] * 1e3:.3f} | {device} | "
            f"{row['throughput_per_s']:.0f} | {faster} | {share(row, peak)} | {launches} |"
        )


if __name__ == "__main__":
    main()
