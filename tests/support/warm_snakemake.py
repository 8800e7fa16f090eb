"""Snakemake's command line without the second that importing it takes; see warm/snakemake.py."""

import json
import select
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

SERVER = Path(__file__).parent / "warm" / "snakemake.py"


@cache
def server() -> subprocess.Popen[str]:
    """The process that has imported Snakemake; it ends with this one, which closes its input."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    # -P: its own name must not hide the package
    return subprocess.Popen([sys.executable, "-P", str(SERVER)], **pipes)


def snakemake(
    words: list[str], folder: Path, environment: dict[str, str], *, seconds: float
) -> subprocess.CompletedProcess[str]:
    """Run Snakemake with these words in that folder; its errors are in the same output."""
    with tempfile.NamedTemporaryFile("r") as output:
        request = {"words": words, "folder": str(folder), "environment": environment}
        print(json.dumps({**request, "output": output.name}), file=server().stdin, flush=True)
        if not select.select([server().stdout], [], [], seconds)[0]:
            server().kill()
            raise subprocess.TimeoutExpired(words, seconds)
        code = int(server().stdout.readline())
        return subprocess.CompletedProcess(["snakemake", *words], code, output.read())
