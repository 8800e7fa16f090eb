"""A driver library of the tests (fake_nvml.c), and what a new process reads from it."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def build_driver(folder: Path) -> None:
    """Compile the library into `folder`, under the name that NVML has on Linux."""
    source, library = Path(__file__).with_name("fake_nvml.c"), folder / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)


def printed(program: str, folder: Path, **variables: str) -> str:
    """What a Python program prints that finds NVML in `folder`, with these variables."""
    kept = {name: value for name, value in os.environ.items() if "CUDA" not in name}
    paths = {"LD_LIBRARY_PATH": str(folder), "PYTHONPATH": str(ROOT / "scripts")}
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**kept, **paths, **variables},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.strip()
