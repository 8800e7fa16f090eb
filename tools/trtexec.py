"""Compare the times of a TensorRT engine with NVIDIA's trtexec, for the same shapes.

python tools/trtexec.py artifacts/MODEL/engines/VARIANT reports/MODEL/VARIANT.latency.json
"""

import argparse
import shutil
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from tightrope.errors import TightropeError
from tightrope.records.latency import LatencyRecord
from tightrope.runtimes.tensorrt.trtexec import measured


def main() -> None:
    """Print one line per shape: the time on the GPU, the time of trtexec, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("engine", type=Path, help="folder of the engine, with model.plan")
    parser.add_argument("record", type=Path, help="its latency.json")
    chosen = parser.parse_args()
    program = shutil.which("trtexec")
    if program is None:
        sys.exit(
            "trtexec is not on the PATH: it comes with NVIDIA's TensorRT package, not with pip's"
        )
    try:
        record = LatencyRecord.read(chosen.record)
        for shape in record.shapes:
            ours = statistics.median(shape.device_s or ())
            theirs = measured(program, chosen.engine, shape.sizes)
            print(
                f"{'x'.join(map(str, shape.sizes.values()))}: {ours * 1e3:.4f} ms on the GPU, "
                f"trtexec {theirs * 1e3:.4f} ms, ratio {ours / theirs:.3f}"
            )
    except TightropeError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
