"""Snakemake's command line without the second that importing it takes; see warm/snakemake.py."""

import json
import os
import select
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

SERVER = Path(__file__).parent / "warm" / "snakemake.py"
# What forks starts no thread: OpenBLAS of numpy, jemalloc of pyarrow
NO_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}


@cache
def server() -> subprocess.Popen[str]:
    """The process that has imported Snakemake; it ends with this one, which closes its input."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    environment = {**os.environ, **NO_THREADS}
    # -P: its own name must not hide the package
    return subprocess.Popen([sys.executable, "-P", str(SERVER)], env=environment, **pipes)


def snakemake(
    words: list[str], folder: Path, environment: dict[str, str], *, seconds: float
) -> subprocess.CompletedProcess[str]:
    """Run Snakemake with these words in that folder; its errors are in the same output."""
    with tempfile.NamedTemporaryFile("r") as output:
        request = [words, str(folder), environment, output.name]
        print(json.dumps(request), file=server().stdin, flush=True)
        if not select.select([server().stdout], [], [], seconds)[0]:
            server().kill()
            raise subprocess.TimeoutExpired(words, seconds)
        code = int(server().stdout.readline())
        return subprocess.CompletedProcess(["snakemake", *words], code, output.read())
