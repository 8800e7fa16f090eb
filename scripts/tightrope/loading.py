"""An engine from its folder: its module is imported by name, its files are verified first."""

import importlib
import time
from pathlib import Path
from typing import Any

from tightrope.manifest import read_manifest
from tightrope.variants import parse


def engine_module(engine: str) -> Any:
    """The module of that engine; importing it imports the runtime."""
    return importlib.import_module(f"tightrope.engines.{engine}")


def load_engine(path: Path | str, *, threads: int) -> tuple[Any, dict[str, float]]:
    """The `run` of the engine with manifest `path`, and seconds of its import and load.

    Raises ArtifactError where a file of the engine is not the one that was built.
    """
    variant = parse(read_manifest(path)["variant"])
    began = time.perf_counter()
    module = engine_module(variant.engine)
    imported = time.perf_counter()
    run = module.load(Path(path).parent, precision=variant.precision, threads=threads)
    loaded = time.perf_counter()
    return run, {"import_s": imported - began, "load_s": loaded - imported}
