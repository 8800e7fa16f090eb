"""Programs that are run as a user runs them, who has none of this project."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def run_in(folder: Path, *words: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python in that working directory, with these variables besides those of the tests."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, *map(str, words)],
        **{"cwd": folder, "env": environment | variables, "timeout": 300},
        **{"capture_output": True, "text": True, "check": False},
    )


def started(repository: Path, *words: object, **settings: Any) -> "subprocess.Popen[str]":
    """A Python that has begun, with the modules of this project; more `variables` among others."""
    paths = {"PYTHONPATH": str(repository / "scripts"), **settings.pop("variables", {})}
    words = (sys.executable, *map(str, words))
    return subprocess.Popen(words, env={**os.environ, **paths}, text=True, **settings)


def printed_in(folder: Path, *words: object, **variables: str) -> str:
    """What a program prints there that must go well."""
    done = run_in(folder, *words, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
