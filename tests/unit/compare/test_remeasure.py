"""Two engines of a variant, timed side by side."""

import copy
import io
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from artifact_files import written
from onnx import helper, numpy_helper
from tightrope.artifacts.files import sha256
from tightrope.compare.compare import compare
from tightrope.compare.read import Key, Report, RowKey, read_report
from tightrope.compare.remeasure import remeasure
from tightrope.onnx.file import load_onnx, save_onnx
from tightrope.statistics import Interval
from tightrope.variants import Variant
from tiny_model import TinyModel, build_variant

VARIANT = Variant("cpu", "onnxruntime", "fp32")
ROW = RowKey("tiny", str(VARIANT), (("batch", 1), ("sequence", 32)))
TEMPLATE = Path(__file__).parents[2] / "data/reports/first/summary.json"
WIDTH = 300_000
pytestmark = pytest.mark.usefixtures("short_rounds")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other load is not waited for, and disturbs nothing: these differences are large."""
    monkeypatch.setattr("tightrope.compare.remeasure.QUIET_SECONDS", 1.0)
    for module in ("records.record", "measure.rounds"):
        monkeypatch.setattr(f"tightrope.{module}.MAX_FOREIGN_CORES", math.inf)


@pytest.fixture(scope="module")
def slow(tiny: TinyModel, made_once: Callable[..., Path]) -> Path:
    """The engine with two more matrix products, which leave its answers as they are."""

    def make(folder: Path) -> None:
        source = folder / "source/model.onnx"
        source.parent.mkdir(parents=True)
        save_onnx(with_more_work(load_onnx(tiny.simplified)), source)
        build_variant(tiny, VARIANT, folder / "engine/engine.json", source=source)

    return made_once("slow-onnxruntime", make) / "engine"


def with_more_work(model: onnx.ModelProto) -> onnx.ModelProto:
    """Add the logits times two matrices times zero to the logits."""
    graph = model.graph
    logits = graph.output[0].name
    for node in graph.node:
        node.output[:] = ["given" if name == logits else name for name in node.output]
    draw = np.random.default_rng(0)
    shapes = {"wide": (3, WIDTH), "narrow": (WIDTH, 3)}
    weights = {name: draw.random(shape, dtype=np.float32) for name, shape in shapes.items()}
    weights["zero"] = np.zeros(1, dtype=np.float32)
    graph.initializer.extend(numpy_helper.from_array(one, name) for name, one in weights.items())
    graph.node.extend(
        helper.make_node(kind, inputs, [output])
        for kind, inputs, output in (
            ("MatMul", ["given", "wide"], "first"),
            ("MatMul", ["first", "narrow"], "second"),
            ("Mul", ["second", "zero"], "third"),
            ("Add", ["given", "third"], logits),
        )
    )
    return model


def project(folder: Path, tiny: TinyModel, engine: Path) -> Report:
    """A finished run with that engine: its files where they belong, and a summary."""
    model = folder / "artifacts/tiny"
    shutil.copytree(tiny.checkpoint.parent, model / "checkpoint")
    shutil.copytree(tiny.data.parent, model, dirs_exist_ok=True)
    shutil.copytree(engine, model / "engines" / str(VARIANT))
    document: dict[str, Any] = json.loads(TEMPLATE.read_text())
    result = next(one for one in document["results"] if one["variant"] == str(VARIANT))
    manifest = model / "engines" / str(VARIANT) / "engine.json"
    result.update(engine_sha256=sha256(manifest), threads=1)
    rows = [{**copy.deepcopy(result["latency"][0]), **dict(ROW.shape)}]
    document["results"] = [{**result, "latency": rows}]
    path = folder / "reports/summary.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(document))
    return read_report(path)


def test_an_engine_beside_itself_is_as_fast(
    tmp_path: Path, tiny: TinyModel, built: Callable[[Variant], Path]
) -> None:
    engine = built(VARIANT).parent
    old, new = (project(tmp_path / name, tiny, engine) for name in ("old", "new"))
    found = remeasure(old, new, [ROW], io.StringIO())[ROW]
    assert isinstance(found, Interval), found
    assert found.low < 1 < found.high or 0.8 < found.value < 1.25


def test_a_slower_engine_is_found(
    tmp_path: Path, tiny: TinyModel, built: Callable[[Variant], Path], slow: Path
) -> None:
    old = project(tmp_path / "old", tiny, built(VARIANT).parent)
    new = project(tmp_path / "new", tiny, slow)
    (change,) = compare(old, new, again=lambda *them: remeasure(*them, io.StringIO())).speed
    assert change.time, change.reason
    assert change.time.low > 1.03
    assert (change.verdict, change.reference) == ("slower", "itself, side by side")
    back = remeasure(new, old, [ROW], io.StringIO())[ROW]
    assert isinstance(back, Interval) and back.high < 0.97


def test_engines_that_are_not_there_as_measured_are_told(
    tmp_path: Path, tiny: TinyModel, built: Callable[[Variant], Path]
) -> None:
    old, new = (project(tmp_path / name, tiny, built(VARIANT).parent) for name in ("old", "new"))
    manifest = tmp_path / "new/artifacts/tiny/engines" / str(VARIANT) / "engine.json"
    document = json.loads(manifest.read_text())
    document["libraries"]["onnxruntime"] = "1.0"
    written(manifest, document)
    assert "another engine than the one that was" in str(remeasure(old, new, [ROW])[ROW])
    new.results[Key("tiny", str(VARIANT))]["engine_sha256"] = sha256(manifest)  # type: ignore[index]
    assert "built with onnxruntime 1.0, here is" in str(remeasure(old, new, [ROW])[ROW])
    manifest.unlink()
    (change,) = compare(old, new, again=remeasure).speed
    assert change.verdict == "not judged" or "not there any more" in str(change.reason)
