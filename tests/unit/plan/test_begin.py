"""What a run makes again, as the DAG is built."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tightrope.artifacts.failures import CONTINUES, write_failure
from tightrope.artifacts.files import write_json
from tightrope.plan import begin
from tightrope.plan.location import Location
from tightrope.plan.plan import Plan

FILES = ["ok.json", "failed.json", "killed.json", "cut.json", "failed.onnx", "missing.json"]
FIRST = {"artifacts/m/data/data.json", "artifacts/m/source/checkpoint.json"}


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., set[str]]:
    """What is made again of FILES and of a model without data and checkpoint."""
    monkeypatch.chdir(tmp_path)
    write_json("ok.json", {"status": "ok"})
    write_failure("failed.json", reason="too slow", transient=False)
    write_failure("killed.json", reason="killed", transient=True)
    write_failure("failed.onnx", reason="not exported", transient=False)
    Path("cut.json").write_text("{")
    monkeypatch.setattr(begin, "records", lambda plan: {("m", "v"): FILES})
    monkeypatch.setattr(begin, "failing_files", lambda config, plan: FILES)
    workflow: Any = SimpleNamespace(storage_settings=SimpleNamespace(default_storage_provider=None))
    plan = Plan(**{**dict.fromkeys(Plan._fields), "models": ["m"]})

    def again(**config: Any) -> set[str]:
        asked = {"retry_failed": False, "remeasure": None, **config}
        return begin.to_make_again(workflow, asked, plan, Location("."))

    return again


@pytest.mark.parametrize(
    ("retry", "tried"),
    [
        (False, set()),
        (True, {"failed.json", "killed.json", "cut.json", "failed.onnx"}),
        ("transient", {"killed.json", "cut.json"}),
    ],
)
def test_failed_and_damaged_files_are_made_again_on_request_and_missing_ones_always(
    found: Callable[..., set[str]], retry: Any, tried: set[str]
) -> None:
    assert found(retry_failed=retry) == {"missing.json", *FIRST} | tried


def test_a_run_that_goes_on_tries_nothing_again(
    found: Callable[..., set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_json("ended.json", {"killed.json": "killed"})
    monkeypatch.setenv(CONTINUES, "ended.json")
    assert found(retry_failed=True, remeasure="disturbed") == {"missing.json", *FIRST}
