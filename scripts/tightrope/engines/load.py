"""Load an engine, after verifying its files, by its module, which is found by name."""

import importlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.errors import WorkFailed, in_one_line
from tightrope.inputs.arrays import Arrays
from tightrope.machine.lacks import cuda_home
from tightrope.runtimes.shapes import in_words
from tightrope.signature import Signature, signature
from tightrope.variants import parse

# processes in which PyTorch compiles; each takes memory, which counts towards the job's limit
COMPILERS = 4
Run = Callable[[Arrays], Any]


def engine_module(engine: str) -> Any:
    """Import the module of an engine, which imports its runtime.

    Raises WorkFailed where the runtime cannot be imported.
    """
    # PyTorch reads it when it is imported; its default is one process per core, up to 32
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(min(COMPILERS, os.cpu_count() or 1)))
    if engine == "inductor" and (home := cuda_home()):
        os.environ.setdefault("CUDA_HOME", str(home))
    try:
        return importlib.import_module(f"tightrope.engines.{engine}")
    except (ImportError, OSError) as error:
        raise WorkFailed(
            f"{engine} cannot be imported ({in_one_line(error)}): install what envs/cpu.txt, or on "
            "a GPU envs/gpu.txt and envs/gpu-tensorrt.txt, names",
            transient=False,
        ) from error


def load_engine(path: Path | str, *, threads: int) -> tuple[Run, dict[str, float]]:
    """Return `run` of the engine with manifest `path`, and the seconds of import and load.

    The time of verifying its files is not in these seconds. Raises ArtifactError where one is
    missing or changed.
    """
    path = Path(path)
    manifest = read_manifest(path, EngineManifest)
    variant = parse(manifest["variant"])
    began = time.perf_counter()
    module = engine_module(variant.engine)
    imported = time.perf_counter()
    settings = {"precision": variant.precision, "device": variant.device, "threads": threads}
    run = module.load(path.parent, **settings, options=manifest["options"])
    loaded = time.perf_counter()
    return within(run, signature(manifest["inputs"]), manifest["max_sequence"]), {
        "import_s": imported - began,
        "load_s": loaded - imported,
    }


def within(run: Run, input_signature: Signature, longest: int | None) -> Run:
    """Limit `run` to texts of at most `longest` tokens, or images of the model's fixed size."""
    fixed = [axis for axis in input_signature.inputs[0].shape if isinstance(axis, int)]
    if longest is None and not fixed:
        return run
    return Limited(run, input_signature.inputs[0].name, fixed, longest)


class Limited:
    """Callable `run(inputs)` that raises a ValueError, which names the range, for other requests.

    Images have the sizes `fixed` of input `name`, texts at most `longest` tokens. `device_seconds`
    and `on_streams` are those of `run`, None where its runtime does not time the device, or has no
    streams.
    """

    def __init__(self, run: Run, name: str, fixed: list[int], longest: int | None) -> None:
        self.run, self.name, self.fixed, self.longest = run, name, fixed, longest
        self.device_seconds = getattr(run, "device_seconds", None)
        self.on_streams = getattr(run, "on_streams", None)

    def __call__(self, inputs: Arrays) -> Any:
        """Return what the engine returns for a request within the range."""
        shape = inputs[self.name].shape
        if self.fixed and list(shape[-len(self.fixed) :]) != self.fixed:
            asked, size = (in_words(tuple(one)) for one in (shape[1:], self.fixed))
            raise ValueError(
                f"a request of {asked} pixels: this model takes {size} (channels x height x width)"
            )
        if self.longest is not None and shape[1] > self.longest:
            raise ValueError(
                f"a request of {shape[1]} tokens: this model takes 1 to {self.longest}"
            )
        return self.run(inputs)
