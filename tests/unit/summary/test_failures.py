import json
import os
import subprocess
import sys
from pathlib import Path

from tightrope.summary.failures import exit_with_failures

ENDING = """
import atexit, sys
from pathlib import Path
from tightrope.summary.failures import exit_with_failures
atexit.register(exit_with_failures, Path(sys.argv[1]))
print("the run itself went well")
"""


def write_summary(folder: Path, **statuses: str) -> Path:
    results = [
        {"model": "m", "variant": name, "status": status, "reason": f"{name} is {status}"}
        for name, status in statuses.items()
    ]
    (folder / "summary.json").write_text(json.dumps({"results": results}))
    return folder / "summary.json"


def test_a_strict_run_ends_with_an_error_that_names_the_failures(repository, tmp_path):
    statuses = {"a": "ok", "b": "failed", "c": "unavailable", "d": "failed"}
    summary = write_summary(tmp_path, **statuses)
    done = subprocess.run(
        [sys.executable, "-c", ENDING, str(summary)],
        env={**os.environ, "PYTHONPATH": str(repository / "scripts")},
        capture_output=True,
        text=True,
        check=False,
    )
    error = "strict: 2 failed: m/b: b is failed; m/d: d is failed\n"
    told = ("the run itself went well\n", error, 1)
    assert (done.stdout, done.stderr, done.returncode) == told
    # what would end this process
    exit_with_failures(write_summary(tmp_path, a="ok", b="unavailable"))
    exit_with_failures(tmp_path / "none.json")
