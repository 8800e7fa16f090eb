"""Compare the times of a TensorRT engine with NVIDIA's trtexec, for the same shapes.

python tools/trtexec.py artifacts/MODEL/engines/VARIANT reports/MODEL/VARIANT.latency.json
"""

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from tightrope.artifacts.files import read_json
from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.errors import TightropeError
from tightrope.records.latency import LatencyRecord
from tightrope.runtimes.shapes import Profile, choose, in_words
from tightrope.signature import signature


def words(
    program: str, plan: Path, profile: int, shapes: dict[str, tuple[int, ...]], times: Path
) -> list[str]:
    """Return the command line of trtexec for a profile of a plan at the `shapes` of its inputs.

    trtexec writes the time of each call to `times`. By default, version 11 replays a CUDA graph and
    leaves transfers out; version 10 did the opposite.
    """
    return [
        program,
        f"--loadEngine={plan}",
        f"--useProfile={profile}",
        f"--shapes={','.join(f'{name}:{in_words(shape)}' for name, shape in shapes.items())}",
        f"--exportTimes={times}",
        "--warmUp=500",
        "--duration=3",
        "--iterations=50",
    ]


def measured(program: str, folder: Path, shape: dict[str, int]) -> float:
    """Return the median compute seconds per call on the GPU, of the engine in `folder`.

    Raises TightropeError with the last line of output where trtexec failed.
    """
    manifest = open_manifest(folder / "engine.json", EngineManifest)
    input_signature = signature(manifest["inputs"])
    request = [shape[axis] for axis in input_signature.free]
    profile = choose([Profile.of(one) for one in manifest["options"]["profiles"]], *request)
    with tempfile.TemporaryDirectory() as scratch:
        times = Path(scratch, "times.json")
        command = words(
            program, folder / "model.plan", profile, input_signature.request(*request), times
        )
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not times.is_file():
            lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            raise TightropeError(f"{' '.join(command)}: {lines[-1] if lines else 'no output'}")
        calls = read_json(times, list[dict[str, float]])
        return statistics.median(call["computeMs"] for call in calls) / 1e3


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
