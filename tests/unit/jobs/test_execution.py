"""Where a job may run: on nodes of its kind, and anywhere to pass on a failure."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tightrope.artifacts.failures import CONTINUES, write_failure
from tightrope.artifacts.files import write_json
from tightrope.errors import TightropeError
from tightrope.jobs.execution import Execution, require_node
from tightrope.jobs.job import Section
from tightrope.machine.host import host_key

OTHER = "0123456789ab"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def job(host: str, **inputs: Any) -> Any:
    return SimpleNamespace(
        input=Section(**inputs),
        output=Section(record="record.json"),
        params=SimpleNamespace(host=host, threads=1, libraries={"onnx": "1"}),
        resources=SimpleNamespace(mem_mb=1000, runtime=1),
    )


def test_a_job_of_another_host_is_refused_unless_it_only_passes_on_a_failure() -> None:
    write_json("engine.json", {"files": {}})
    with pytest.raises(TightropeError, match="planned for host 0123456789ab"):
        require_node(job(OTHER, engine="engine.json"))
    for name in ("engine", "source"):
        write_failure("failed.json", reason="no node has the constraint", transient=False)
        require_node(job(OTHER, **{name: "failed.json"}))
    with pytest.raises(TightropeError):
        require_node(job(OTHER, checkpoint="failed.json"))
    # a race goes on without the engines that failed
    require_node(job(OTHER, engines=["failed.json", "failed.json"]))
    with pytest.raises(TightropeError):
        require_node(job(OTHER, engines=["failed.json", "engine.json"]))


def test_a_job_that_has_ended_before_fails_where_snakemake_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reason = "sbatch: error: Invalid feature specification"
    write_json("ended.json", {"record.json": reason})
    monkeypatch.setenv(CONTINUES, "ended.json")
    assert Execution.of(job("cpu@absent")).limits.ended == reason
    # this machine is no node of that kind
    assert not Path("artifacts/hosts").exists()


def test_a_record_has_the_name_of_the_kind_of_its_node() -> None:
    assert host_key(Execution.of(job("cpu@genoa")).host()) == "genoa"
    assert "name" not in Execution(1, Execution.of(job("cpu@genoa")).limits, {}).host()
