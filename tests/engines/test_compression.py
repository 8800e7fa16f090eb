"""A search for a smaller model of a real tiny one: trained, quantized, built, timed and judged."""

from pathlib import Path
from typing import Any

import pytest
from artifact_files import written
from short_timing import timing_settings
from tightrope.artifacts.files import read_json
from tightrope.checkpoint.prepare import prepare_checkpoint
from tightrope.measure.compression.ladder import Asked
from tightrope.measure.compression.rung import Files, Recipe
from tightrope.measure.compression.search import Search, unmeasured
from tightrope.measure.structures.choose import Analysed
from tightrope.measure.structures.measure import measure_structures
from tightrope.model.structures import Structure
from tiny_model import LONGEST, OPTIONS, TinyModel, build_variant, name_variant

VARIANT = "cpu-onnxruntime-int8-minmax-16"
pytestmark = pytest.mark.usefixtures("short_rounds")
TRAINING: dict[str, Any] = {
    "recipe": {"epochs": 1, "batch": 16, "learning_rate": 1e-4, "sequence": 16, "amp": "off"},
    **{"labels": None, "distill": None, "inputs": {}, "threads": 1, "seed": 0},
}


@pytest.fixture(scope="module")
def files(tiny: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("search")
    source = folder / "small" / "source" / "checkpoint.json"
    parent = f"path:{tiny.checkpoint.parent}"
    prepare_checkpoint(source, source=parent, expected_sha256=None, seed=0)
    engine = folder / "engine" / "engine.json"
    splits = {name: tiny.split(name) for name in ("train", "calibration", "timing")}
    return Files(
        source=source,
        **splits,
        parent=tiny.checkpoint,
        baseline=build_variant(tiny, name_variant("pytorch", "fp32"), engine),
    )


@pytest.fixture(scope="module")
def table(tiny: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("structures") / "table.json"
    plan = {"variant": "cpu-pytorch-fp32", "options": {}, "source": "checkpoint"}
    asked = timing_settings(**plan)
    measure_structures(tiny.checkpoint, tiny.split("timing"), target, asked, host="here")
    return target


def search(files: Files, table: Path, work: Path, asked: Asked, **changes: Any) -> Search:
    recipe: dict[str, Any] = {"training": TRAINING, "variant": VARIANT, "scheme": "u8s8"}
    recipe |= {"options": OPTIONS["onnxruntime"]}
    return Search(
        model="small",
        files=files,
        recipe=Recipe(**{**recipe, "method": "minmax", "samples": 16, **changes}),
        asked=asked,
        settings=timing_settings(),
        analysed=Analysed(files.source, files.train, None, LONGEST, seed=0, threads=1),
        table=table,
        work=work,
        provenance="same",
    )


def test_a_target_ends_it_at_once_and_a_repeat_measures_nothing(
    files: Files, table: Path, tmp_path: Path
) -> None:
    easy = Asked(target=1e-3, budget=1.0, seconds=600.0)
    search(files, table, tmp_path / "work", easy).run(tmp_path / "path.json")
    document = read_json(tmp_path / "path.json")
    assert (document["ended"], document["chosen"], len(document["rungs"])) == ("target met", 1.0, 1)
    assert document["target"]["short_by"] == 0
    assert document["prune"] == {}
    rung = document["rungs"][0]
    assert rung["reason"] is None
    assert rung["speedup_low"] <= rung["speedup"] <= rung["speedup_high"]
    assert [one.name for one in (tmp_path / "work").iterdir() if one.is_file()] == ["rungs.json"]
    search(files, table, tmp_path / "work", easy).run(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "path.json").read_bytes()


def test_a_search_that_was_killed_goes_on_after_its_last_rung(
    files: Files, table: Path, tmp_path: Path
) -> None:
    hard = Asked(target=1e6, budget=1.0, seconds=0.0)
    search(files, table, tmp_path / "work", hard).run(tmp_path / "path.json")
    first = read_json(tmp_path / "path.json")
    assert (first["ended"], len(first["rungs"])) == ("time over", 1)
    assert first["target"]["short_by"] > 1
    longer = hard._replace(seconds=first["rungs"][0]["seconds"] + 0.01)
    search(files, table, tmp_path / "work", longer).run(tmp_path / "path.json")
    second = read_json(tmp_path / "path.json")
    assert second["rungs"][0] == first["rungs"][0]
    assert len(second["rungs"]) == 2
    smaller = second["rungs"][1]
    assert smaller["parameters"] < first["rungs"][0]["parameters"]
    assert smaller["prune"]["intermediate"] == smaller["structure"]["width"]
    # another search begins anew
    other = search(files, table, tmp_path / "work", hard, samples=8)
    assert other.read_state() == []


def test_a_model_that_cannot_be_built_ends_it_with_the_reason(
    files: Files, table: Path, tmp_path: Path
) -> None:
    many = search(files, table, tmp_path / "work", Asked(10.0, 1.0, 600.0), samples=10_000)
    many.run(tmp_path / "path.json")
    document = read_json(tmp_path / "path.json")
    assert (document["ended"], document["chosen"]) == ("not built", None)
    assert "10000 are asked for" in document["rungs"][0]["reason"]
    # it is tried again
    assert many.read_state() == []


def test_a_training_that_diverges_ends_it_with_the_reason(
    files: Files, table: Path, tmp_path: Path
) -> None:
    wild = {**TRAINING, "recipe": {**TRAINING["recipe"], "learning_rate": 1e30}}
    one = search(files, table, tmp_path / "work", Asked(10.0, 1.0, 600.0), training=wild)
    one.run(tmp_path / "path.json")
    document = read_json(tmp_path / "path.json")
    assert (document["ended"], document["chosen"]) == ("not built", None)
    assert "training diverged" in document["rungs"][0]["reason"]


def test_a_state_that_is_torn_counts_as_none(files: Files, table: Path, tmp_path: Path) -> None:
    one = search(files, table, tmp_path / "work", Asked(10.0, 1.0, 600.0))
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "rungs.json").write_text('{"key": "')
    assert one.read_state() == []
    rung = unmeasured(1.0, Structure((2,), 64), {})
    written(tmp_path / "work" / "rungs.json", {"key": one.key(), "rungs": [rung]})
    assert one.read_state() == [rung]
