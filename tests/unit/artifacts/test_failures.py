import os
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from tightrope.artifacts.failures import (
    failure_in,
    read_json_or_raise,
    read_onnx_or_raise,
    write_failure,
)
from tightrope.errors import ArtifactError, WorkFailed
from tightrope.int8.calibrate import calibration_batches, read_any_cache, read_cache
from tightrope.int8.costs import measure_costs
from tightrope.int8.quantize import found_by_search, quantize_onnx
from tightrope.int8.search import SearchInputs, SearchSettings, search_operators
from tightrope.onnx.file import load_onnx
from tiny_model import LONGEST, TinyModel

REASON = "not calibrated: killed by SIGKILL (out of memory, or from outside); naïve"


@pytest.fixture(params=["a.json", "a.onnx"])
def failed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    write_failure(tmp_path / request.param, reason=REASON, transient=True)
    return tmp_path / request.param


@pytest.mark.parametrize("transient", [True, False])
def test_a_failure_is_read_as_it_was_written(failed: Path, transient: bool) -> None:
    write_failure(failed, reason=REASON, transient=transient)
    assert failure_in(failed) == {"reason": REASON, "transient": transient}


def test_what_was_made_holds_no_failure(tiny: TinyModel) -> None:
    for path in (tiny.minmax, tiny.nncf, tiny.u8s8, tiny.simplified, tiny.data, tiny.checkpoint):
        assert failure_in(path) is None
    assert read_json_or_raise(tiny.minmax)["method"] == "minmax"
    assert read_onnx_or_raise(tiny.u8s8) == onnx.load(tiny.u8s8)


def test_a_failed_onnx_file_is_onnx_without_a_graph(tmp_path: Path) -> None:
    write_failure(tmp_path / "a.onnx", reason=REASON, transient=False)
    model = onnx.load(tmp_path / "a.onnx")
    assert not model.HasField("graph")
    assert REASON in {entry.value for entry in model.metadata_props}


def test_a_failure_written_twice_has_the_same_bytes(failed: Path) -> None:
    before = failed.read_bytes()
    write_failure(failed, reason=REASON, transient=True)
    assert failed.read_bytes() == before


def test_a_model_with_the_words_of_a_failure_is_still_a_model(
    tiny: TinyModel, tmp_path: Path
) -> None:
    write_failure(tmp_path / "a.onnx", reason=REASON, transient=False)
    failure, model = onnx.load(tmp_path / "a.onnx"), onnx.load(tiny.u8s8)
    model.metadata_props.extend(failure.metadata_props)
    onnx.save(model, tmp_path / "b.onnx")
    assert failure_in(tmp_path / "b.onnx") is None
    assert load_onnx(tmp_path / "b.onnx") == load_onnx(tiny.u8s8)


@pytest.mark.parametrize("name", ["a.onnx", "a.json"])
def test_what_is_no_file_is_one_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.symlink_to(name)
    with pytest.raises(ArtifactError, match=rf"{name}: cannot be read"):
        failure_in(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ArtifactError, match=rf"{name}: a pipe or device is not read"):
        failure_in(path)


def test_a_file_that_is_cut_off_is_no_failure_but_an_error(failed: Path) -> None:
    failed.write_bytes(failed.read_bytes()[:20])
    with pytest.raises(ArtifactError, match=failed.name):
        failure_in(failed)


def costs_of(model: TinyModel, folder: Path) -> None:
    shapes = [{"batch": 1, "sequence": 8}]
    options = {"shapes": shapes, "host": "here", "threads": 1, "libraries": {}}
    measure_costs(model.simplified, model.u8s8, folder / "costs.json", **options)


def search_of(model: TinyModel, folder: Path) -> None:
    inputs = SearchInputs(
        onnx=model.simplified,
        quantized=model.u8s8,
        calibration=model.minmax,
        data=model.split("calibration"),
        checkpoint=model.checkpoint,
    )
    settings = SearchSettings(
        smoothquant=None,
        budget_points=50,
        sensitivity_samples=4,
        max_sequence=LONGEST,
        threads=1,
        libraries={},
    )
    search_operators(inputs, folder / "search.json", "u8s8", settings)


def batches_of(model: TinyModel) -> None:
    paths = {
        "onnx": model.simplified,
        "calibration": model.nncf,
        "data": model.split("calibration"),
    }
    calibration_batches(**{**paths, "checkpoint": model.checkpoint})


READERS: dict[str, Callable[[TinyModel, Path], object]] = {
    "cache": lambda model, folder: read_cache(folder / "a.json", model=model.simplified),
    "any cache": lambda _, folder: read_any_cache(folder / "a.json"),
    "model": lambda _, folder: load_onnx(folder / "a.onnx"),
    "search": lambda _, folder: found_by_search(folder / "a.json"),
    "samples": lambda model, folder: batches_of(model._replace(nncf=folder / "a.json")),
    "quantizing": lambda model, folder: quantize_onnx(
        model.simplified, folder / "a.json", folder / "b.onnx", scheme="u8s8"
    ),
    "costs": lambda model, folder: costs_of(model._replace(u8s8=folder / "a.onnx"), folder),
    "searching": lambda model, folder: search_of(model._replace(u8s8=folder / "a.onnx"), folder),
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_every_reader_raises_the_reason_and_another_attempt_is_of_no_use(
    tiny: TinyModel, tmp_path: Path, reader: Callable[[TinyModel, Path], object]
) -> None:
    for name in ("a.json", "a.onnx"):
        write_failure(tmp_path / name, reason=REASON, transient=True)
    with pytest.raises(WorkFailed) as caught:
        reader(tiny, tmp_path)
    assert (caught.value.reason, caught.value.transient) == (REASON, False)
    assert {path.name for path in tmp_path.iterdir()} == {"a.json", "a.onnx"}
