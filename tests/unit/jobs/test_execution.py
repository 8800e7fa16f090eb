"""Where a job may run, and what it leaves: its one file, or a failure with the reason."""

import json
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tightrope.artifacts.failures import CONTINUES, failure_in, write_failure
from tightrope.artifacts.files import write_json
from tightrope.errors import ArtifactError, StorageError, TightropeError
from tightrope.jobs.execution import Execution, require_node, run_file_job
from tightrope.jobs.job import Section
from tightrope.machine.host import host_key

OTHER = "0123456789ab"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def job(host: str = OTHER, output: str = "a.json", last_attempt: int = 1, **inputs: Any) -> Any:
    return SimpleNamespace(
        input=Section(**inputs),
        output=Section(made=output),
        params=SimpleNamespace(libraries={"onnx": "1"}),
        settings=SimpleNamespace(host=host, threads=1),
        resources=SimpleNamespace(mem_mb=64000, runtime=1, last_attempt=last_attempt),
    )


def test_a_job_of_another_host_is_refused_unless_it_only_passes_on_a_failure() -> None:
    write_json("engine.json", {"files": {}})
    write_failure("failed.json", reason="no node has the constraint", transient=False)
    both = {"engines": ["failed.json", "engine.json"]}
    for inputs in ({"engine": "engine.json"}, {"checkpoint": "failed.json"}, both):
        with pytest.raises(TightropeError, match="planned for host 0123456789ab"):
            require_node(job(**inputs))
    # a race goes on without the engines that failed
    none = {"engines": ["failed.json", "failed.json"]}
    for inputs in ({"engine": "failed.json"}, {"source": "failed.json"}, none):
        require_node(job(**inputs))


def test_a_job_of_a_node_fails_where_snakemake_runs_and_has_its_name(monkeypatch) -> None:
    reason = "sbatch: error: Invalid feature specification"
    write_json("ended.json", {"a.json": reason})
    monkeypatch.setenv(CONTINUES, "ended.json")
    assert Execution.of(job("cpu@absent")).limits.ended == reason
    # this machine is no node of that kind
    assert not Path("artifacts/hosts").exists()
    # a record has the name of the kind of its node
    assert host_key(Execution.of(job("cpu@genoa")).host()) == "genoa"
    assert "name" not in Execution(1, Execution.of(job("cpu@genoa")).limits, {}).host()


def raises(error: Exception) -> None:
    raise error


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_work_that_is_killed_is_tried_again_and_recorded_at_the_last_attempt(folder: Path) -> None:
    with pytest.raises(TightropeError, match=r"a\.json: killed by SIGKILL .* another attempt"):
        run_file_job(job(last_attempt=0), "not made", die)
    assert list(folder.iterdir()) == []
    run_file_job(job(), "not made", die)
    reason = "not made: killed by SIGKILL (out of memory, or from outside)"
    assert failure_in("a.json") == {"reason": reason, "transient": True}


def test_a_failed_input_is_passed_on_and_damage_ends_the_job_without_output() -> None:
    write_json("made.json", {"a": 1})
    write_failure("failed.onnx", reason="not quantized: why", transient=True)
    run_file_job(job(last_attempt=0, one="made.json", other="failed.onnx"), "not made", die)
    assert failure_in("a.json") == {"reason": "not quantized: why", "transient": True}
    # an error of the surroundings too
    Path("a.json").unlink()
    for kind in (ArtifactError, StorageError):
        with pytest.raises(kind, match="x: cut off"):
            run_file_job(job(), "not made", lambda kind=kind: raises(kind("x: cut off")))
    for name, content, said in (
        ("cut.json", b'{"status": "fai', r"cut\.json: invalid JSON"),
        ("cut.onnx", b"\x08", r"cut\.onnx: no readable ONNX file"),
    ):
        Path(name).write_bytes(content)
        with pytest.raises(ArtifactError, match=said):
            run_file_job(job(one=name), "not made", die)
    assert not Path("a.json").exists()
    run_file_job(job(), "not made", lambda: write_json("a.json", {"pid": os.getpid()}))
    assert json.loads(Path("a.json").read_text())["pid"] != os.getpid(), "in another process"
