import os
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from tightrope.artifacts import failures
from tightrope.errors import ArtifactError, WorkFailed
from tightrope.int8.calibrate import read_any_cache, read_cache
from tightrope.int8.quantize import found_by_search, quantize_onnx
from tightrope.onnx.file import load_onnx
from tiny_model import TinyModel

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


def test_what_is_no_file_or_was_cut_off_is_one_line(failed: Path) -> None:
    name = failed.name
    failed.write_bytes(failed.read_bytes()[:20])
    with pytest.raises(ArtifactError, match=name):
        failures.failure_in(failed)
    failed.unlink()
    failed.symlink_to(name)
    with pytest.raises(ArtifactError, match=rf"{name}: cannot be read"):
        failures.failure_in(failed)
    failed.unlink()
    os.mkfifo(failed)
    with pytest.raises(ArtifactError, match=rf"{name}: a pipe or device is not read"):
        failures.failure_in(failed)


READERS: dict[str, Callable[[TinyModel, Path], object]] = {
    "cache": lambda model, folder: read_cache(folder / "a.json", model=model.simplified),
    "any cache": lambda _, folder: read_any_cache(folder / "a.json"),
    "model": lambda _, folder: load_onnx(folder / "a.onnx"),
    "search": lambda _, folder: found_by_search(folder / "a.json"),
    "quantizing": lambda model, folder: quantize_onnx(
        model.simplified, folder / "a.json", folder / "b.onnx", scheme="u8s8"
    ),
}


def test_every_reader_raises_the_reason_and_another_attempt_is_of_no_use(tiny, tmp_path) -> None:
    for name in ("a.json", "a.onnx"):
        failures.write_failure(tmp_path / name, reason=REASON, transient=True)
    for name, reader in READERS.items():
        with pytest.raises(WorkFailed) as caught:
            reader(tiny, tmp_path)
        assert (caught.value.reason, caught.value.transient) == (REASON, False), name
    assert {path.name for path in tmp_path.iterdir()} == {"a.json", "a.onnx"}
