"""Time an engine with NVIDIA's trtexec, as a check: the flags of TensorRT 11."""

import statistics
import subprocess
import tempfile
from pathlib import Path

from tightrope.artifacts.files import read_json
from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.errors import TightropeError
from tightrope.runtimes.buckets import in_words
from tightrope.runtimes.tensorrt.profiles import Profile, choose
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
