"""Driver libraries of the tests, and what a new process reads from them."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def build_driver(folder: Path) -> None:
    """Compile the libraries into `folder`, under the names that NVML and CUDA have on Linux."""
    for name, library in (("fake_nvml.c", "libnvidia-ml.so.1"), ("fake_cuda.c", "libcuda.so.1")):
        source = Path(__file__).with_name(name)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / library, source], check=True)


def printed(program: str, folder: Path, arguments: tuple[str, ...] = (), **variables: str) -> str:
    """What a Python program prints that finds NVML in `folder`, with these variables."""
    kept = {name: value for name, value in os.environ.items() if "CUDA" not in name}
    paths = {"LD_LIBRARY_PATH": str(folder), "PYTHONPATH": str(ROOT / "scripts")}
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**kept, **paths, **variables},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.strip()


LOOP = """
import contextlib, io, json, os, sys
program = compile(sys.argv[1], "program", "exec")
for variables in json.loads(sys.argv[2]):
    os.environ.update(variables)
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(program, {})
    for name in variables:
        del os.environ[name]
    print(json.dumps(output.getvalue().strip()))
"""


def printed_each(program: str, folder: Path, cases: list[dict[str, str]]) -> list[str]:
    """What the program prints with each of these variables, one after the other in a process."""
    printed_lines = printed(LOOP, folder, arguments=(program, json.dumps(cases))).splitlines()
    return [json.loads(line) for line in printed_lines]
