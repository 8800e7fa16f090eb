"""Programs that are run as a user runs them, who has none of this project."""

import os
import subprocess
import sys
from pathlib import Path


def run_in(folder: Path, *words: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python in that working directory, with these variables besides those of the tests."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, *map(str, words)],
        **{"cwd": folder, "env": environment | variables, "timeout": 300},
        **{"capture_output": True, "text": True, "check": False},
    )


def printed_in(folder: Path, *words: object, **variables: str) -> str:
    """What a program prints there that must go well."""
    done = run_in(folder, *words, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
