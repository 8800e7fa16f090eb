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
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from operations import operations
from tightrope.artifacts.files import read_json
from tightrope.decide.result import Shape
from tightrope.machine.host import describe_host
from tightrope.measure.profile_inputs import operations_per_s, types_on
from tightrope.terminal.decision import size_label

SIZE = 8192
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

    What this PyTorch refuses is left out.
    """
    found = {}
    with torch.inference_mode():
        for precision in types_on(device):
            try:
                found[precision] = operations_per_s(precision, device, size)
            except RuntimeError as error:
                print(f"peak of {precision}: {error}", file=sys.stderr)
    return found


def rows_of(path: Path) -> Rows:
    """Each shape of each variant on a GPU that was measured, by model, variant and shape."""
    return {
        (one["model"], one["variant"], size_label(Shape(**row["shape"]))): {**one, **row}
        for one in read_json(path)["results"]
        if one["device"] == "cuda"
        for row in one["latency"]
    }


def share(row: dict[str, Any], peak: dict[str, float]) -> str:
    """What of the peak in its precision a call reaches, of the operations that it does.

    A dash for images, whose operations are not counted.
    """
    shape = row["shape"]
    if "sequence" not in shape:
        return "-"
    config = read_json(Path("artifacts", row["model"], "checkpoint/config.json"))
    read = 1 if row["engine"] in SIMPLIFIED else shape["sequence"]
    work = operations(config, shape["batch"], shape["sequence"], read)
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
