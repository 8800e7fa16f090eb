import json
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tightrope.artifacts.failures import failure_in, write_failure
from tightrope.artifacts.files import write_json
from tightrope.errors import ArtifactError, StorageError, TightropeError
from tightrope.jobs.file_job import run_file_job
from tightrope.jobs.job import Section


def job_of(folder: Path, name: str = "a.json", last_attempt: int = 1, **inputs: Path) -> Any:
    resources = SimpleNamespace(mem_mb=64000, runtime=1, last_attempt=last_attempt)
    sections = {"input": Section(**inputs), "output": Section(made=folder / name)}
    return SimpleNamespace(**sections, resources=resources)


def raises(error: Exception) -> None:
    raise error


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_work_that_goes_well_writes_the_output_from_another_process(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    run_file_job(job, "not made", lambda: write_json(job.output.made, {"pid": os.getpid()}))
    assert json.loads((tmp_path / "a.json").read_text())["pid"] != os.getpid()


@pytest.mark.parametrize("name", ["a.json", "a.onnx"])
@pytest.mark.parametrize("last_attempt", [0, 1])
def test_work_that_fails_writes_its_reason_as_the_output(
    tmp_path: Path, name: str, last_attempt: int
) -> None:
    job = job_of(tmp_path, name, last_attempt)
    run_file_job(job, "not made", lambda: raises(TightropeError("no such operator")))
    reason = "not made: no such operator"
    assert failure_in(tmp_path / name) == {"reason": reason, "transient": False}


def test_work_that_is_killed_is_tried_again_and_recorded_at_the_last_attempt(
    tmp_path: Path,
) -> None:
    with pytest.raises(TightropeError, match=r"a\.json: killed by SIGKILL .* another attempt"):
        run_file_job(job_of(tmp_path, last_attempt=0), "not made", die)
    assert list(tmp_path.iterdir()) == []
    run_file_job(job_of(tmp_path), "not made", die)
    reason = "not made: killed by SIGKILL (out of memory, or from outside)"
    assert failure_in(tmp_path / "a.json") == {"reason": reason, "transient": True}


def test_the_failure_of_an_input_is_passed_on_as_it_is_without_any_work(tmp_path: Path) -> None:
    write_json(tmp_path / "made.json", {"a": 1})
    write_failure(tmp_path / "failed.onnx", reason="not quantized: why", transient=True)
    inputs = {"one": tmp_path / "made.json", "other": tmp_path / "failed.onnx"}
    run_file_job(job_of(tmp_path, last_attempt=0, **inputs), "not made", die)
    assert failure_in(tmp_path / "a.json") == {"reason": "not quantized: why", "transient": True}


@pytest.mark.parametrize("kind", [ArtifactError, StorageError])
def test_an_error_of_the_surroundings_ends_the_job_without_an_output(
    tmp_path: Path, kind: type[Exception]
) -> None:
    with pytest.raises(kind, match="x: cut off"):
        run_file_job(job_of(tmp_path), "not made", lambda: raises(kind("x: cut off")))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("cut.json", b'{"status": "fai', r"cut\.json: invalid JSON"),
        ("cut.onnx", b"\x08", r"cut\.onnx: no readable ONNX file"),
    ],
)
def test_a_damaged_input_ends_the_job_without_an_output(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ArtifactError, match=said):
        run_file_job(job_of(tmp_path, one=tmp_path / name), "not made", die)
    assert not (tmp_path / "a.json").exists()
