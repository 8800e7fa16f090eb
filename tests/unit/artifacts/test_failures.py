"""Failures in the place of a file; who reads one: tests/workflow/test_failures.py."""

from pathlib import Path

import onnx
import pytest
from tightrope.artifacts import failures
from tightrope.onnx.file import load_onnx

REASON = "not calibrated: killed by SIGKILL (out of memory, or from outside); naïve"


@pytest.fixture(params=["a.json", "a.onnx"])
def failed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    failures.write_failure(tmp_path / request.param, reason=REASON, transient=True)
    return tmp_path / request.param


def test_a_failure_is_read_as_it_was_written_and_what_was_made_holds_none(failed, tiny) -> None:
    before = failed.read_bytes()
    for transient in (False, True):
        failures.write_failure(failed, reason=REASON, transient=transient)
        assert failures.failure_in(failed) == {"reason": REASON, "transient": transient}
    assert failed.read_bytes() == before
    for path in (tiny.minmax, tiny.nncf, tiny.u8s8, tiny.simplified, tiny.data, tiny.checkpoint):
        assert failures.failure_in(path) is None
    assert failures.read_json_or_raise(tiny.minmax)["method"] == "minmax"
    assert failures.read_onnx_or_raise(tiny.u8s8) == onnx.load(tiny.u8s8)


def test_a_failed_onnx_file_has_no_graph_and_a_model_of_its_words_is_one(tiny, tmp_path) -> None:
    failures.write_failure(tmp_path / "a.onnx", reason=REASON, transient=False)
    failure, model = onnx.load(tmp_path / "a.onnx"), onnx.load(tiny.u8s8)
    assert not failure.HasField("graph")
    model.metadata_props.extend(failure.metadata_props)
    onnx.save(model, tmp_path / "b.onnx")
    assert failures.failure_in(tmp_path / "b.onnx") is None
    assert load_onnx(tmp_path / "b.onnx") == load_onnx(tiny.u8s8)
