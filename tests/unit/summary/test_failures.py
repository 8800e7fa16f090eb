import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tightrope.summary.failures import failures

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


def test_only_failed_results_are_failures(tmp_path: Path) -> None:
    summary = write_summary(tmp_path, a="ok", b="failed", c="unavailable")
    assert [one["variant"] for one in failures(summary)] == ["b"]


@pytest.mark.parametrize(
    ("statuses", "error"),
    [
        (
            {"a": "ok", "b": "failed", "c": "unavailable", "d": "failed"},
            "strict: 2 failed: m/b: b is failed; m/d: d is failed\n",
        ),
        ({"a": "ok", "b": "unavailable"}, ""),
        (None, ""),
    ],
)
def test_a_strict_run_ends_with_an_error_that_names_the_failures(
    repository: Path, tmp_path: Path, statuses: dict[str, str] | None, error: str
) -> None:
    if statuses:
        write_summary(tmp_path, **statuses)
    done = subprocess.run(
        [sys.executable, "-c", ENDING, str(tmp_path / "summary.json")],
        env={**os.environ, "PYTHONPATH": str(repository / "scripts")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("the run itself went well\n", error)
    assert done.returncode == bool(error)
