import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tightrope.artifacts.failures import write_failure
from tightrope.plan.run import delete_failed, executor_of
from tightrope.summary.failures import failures
from tiny_model import TinyModel

ENDING = """
import sys
from tightrope.plan.run import end_strictly
end_strictly(sys.argv[1])
print("the run itself went well")
"""


def python(repository: Path, program: str, *words: str, **options) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(repository / "scripts")}
    command = [sys.executable, "-c", program, *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, env=environment, **pipes, **options)


def write_summary(folder: Path, **statuses: str) -> Path:
    results = [
        {"model": "m", "variant": name, "status": status, "reason": f"{name} is {status}"}
        for name, status in statuses.items()
    ]
    (folder / "summary.json").write_text(json.dumps({"results": results}))
    return folder / "summary.json"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["snakemake", "--cores", "1"], "local"),
        (["/a/b/snakemake", "--cores", "1", "reports/summary.html"], "local"),
        (["/site-packages/snakemake/__main__.py", "--cores", "1", "--forceall"], "local"),
        (["snakemake", "--cores", "1", "--dry-run"], None),
        (["snakemake", "--cores", "1", "-n"], None),
        (["snakemake", "--lint"], None),
        (["snakemake", "--unlock"], None),
        (["snakemake", "--dag"], None),
        (["snakemake", "--summary"], None),
        (["snakemake", "--list-rules"], None),
        (["pytest", "--cores", "1"], None),
        (["snakemake", "--jobs", "1", "--executor", "slurm"], "slurm"),
    ],
    ids=str,
)
def test_a_command_line_executes_jobs_or_only_tells(
    words: list[str], expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert executor_of(words) == expected


def test_failed_and_broken_records_are_deleted_and_no_other(tmp_path: Path) -> None:
    texts = {
        "ok": '{"status": "ok"}',
        "failed": '{"status": "failed", "reason": "x"}',
        "broken": '{"status": "o',
        "empty": "",
    }
    paths = [tmp_path / name for name in (*texts, "missing")]
    for path in paths[:-1]:
        path.write_text(texts[path.name])
    assert [path.name for path in delete_failed(paths)] == ["failed", "broken", "empty"]
    assert [path.name for path in tmp_path.iterdir()] == ["ok"]
    assert delete_failed(paths) == []


def test_json_that_is_no_record_is_deleted_too(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text("[]")
    assert delete_failed([tmp_path / "list.json"]) == [tmp_path / "list.json"]


def test_steps_that_failed_are_deleted_once_and_those_that_went_well_stay(
    tiny: TinyModel, tmp_path: Path
) -> None:
    failed = [tmp_path / name for name in ("minmax-8.json", "u8s8-minmax-8.onnx")]
    for path in failed:
        write_failure(path, reason="not calibrated: why", transient=True)
    (tmp_path / "cut.onnx").write_bytes(failed[1].read_bytes()[:10])
    made = [tiny.minmax, tiny.u8s8]
    before = [path.read_bytes() for path in made]
    assert delete_failed([*failed, *made, *failed, tmp_path / "cut.onnx"]) == [
        *failed,
        tmp_path / "cut.onnx",
    ]
    assert [path.read_bytes() for path in made] == before
    assert list(tmp_path.iterdir()) == []


def test_only_failed_results_are_failures(tmp_path: Path) -> None:
    summary = write_summary(tmp_path, a="ok", b="failed", c="unavailable")
    assert [one["variant"] for one in failures(summary)] == ["b"]


def test_a_strict_run_ends_with_an_error_that_names_the_failures(
    repository: Path, tmp_path: Path
) -> None:
    summary = write_summary(tmp_path, a="ok", b="failed", c="unavailable", d="failed")
    process = python(repository, ENDING, str(summary))
    out, error = process.communicate()
    assert process.returncode == 1
    assert out == "the run itself went well\n"
    assert error == "strict: 2 failed: m/b: b is failed; m/d: d is failed\n"


@pytest.mark.parametrize("statuses", [{"a": "ok", "b": "unavailable"}, None])
def test_a_strict_run_without_failures_ends_well(
    repository: Path, tmp_path: Path, statuses: dict[str, str] | None
) -> None:
    if statuses:
        write_summary(tmp_path, **statuses)
    process = python(repository, ENDING, str(tmp_path / "summary.json"))
    assert process.communicate() == ("the run itself went well\n", "")
    assert process.returncode == 0
