"""Snakemake's command line without the second that importing it takes; see warm/snakemake.py."""

import json
import select
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = Path(__file__).parent / "warm" / "snakemake.py"
# What forks starts no thread: OpenBLAS of numpy, jemalloc of pyarrow
NO_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
SERVERS: dict[str | None, subprocess.Popen[str]] = {}


def server(environment: dict[str, str]) -> subprocess.Popen[str]:
    """The process that has imported Snakemake and its plugins, one for each PYTHONPATH.

    It ends with this process, which closes its input.
    """
    packages = environment.get("PYTHONPATH")
    if packages not in SERVERS:
        SERVERS[packages] = subprocess.Popen(
            # -P: its own name must not hide the package
            [sys.executable, "-P", str(PROGRAM)],
            env=environment | NO_THREADS,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    return SERVERS[packages]


def snakemake(
    words: list[str], folder: Path, environment: dict[str, str], *, seconds: float
) -> subprocess.CompletedProcess[str]:
    """Run Snakemake with these words in that folder; its errors are in the same output."""
    asked = server(environment)
    with tempfile.NamedTemporaryFile("r") as output:
        request = [words, str(folder), environment, output.name]
        print(json.dumps(request), file=asked.stdin, flush=True)
        if not select.select([asked.stdout], [], [], seconds)[0]:
            asked.kill()
            raise subprocess.TimeoutExpired(words, seconds)
        code = int(asked.stdout.readline())
        return subprocess.CompletedProcess(["snakemake", *words], code, output.read())
