"""Two engines of a variant, timed side by side: a real pair, and pairs whose times are planted."""

import io
import json
import math
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from artifact_files import written
from played_engines import Played, asked
from tightrope.artifacts.files import sha256
from tightrope.compare import remeasure as module
from tightrope.compare.compare import compare
from tightrope.compare.read import Key, Report, RowKey, read_report
from tightrope.compare.remeasure import remeasure
from tightrope.decide.result import Shape
from tightrope.statistics import Interval
from tightrope.variants import Variant
from tiny_model import TinyModel

VARIANT = Variant("cpu", "onnxruntime", "fp32")
ROW = RowKey(Key("tiny", str(VARIANT)), Shape(batch=1, sequence=32))
TEMPLATE = Path(__file__).parents[2] / "data/reports/first/summary.json"


@pytest.fixture
def project(
    tmp_path: Path, tiny: TinyModel, built: Callable[[Variant], Path]
) -> Callable[[str], Report]:
    """A finished run of that name: its files where they belong, and a summary."""

    def project(name: str) -> Report:
        folder = tmp_path / name
        model = folder / "artifacts/tiny"
        shutil.copytree(tiny.checkpoint.parent, model / "checkpoint")
        shutil.copytree(tiny.data.parent, model, dirs_exist_ok=True)
        shutil.copytree(built(VARIANT).parent, model / "engines" / str(VARIANT))
        document: dict[str, Any] = json.loads(TEMPLATE.read_text())
        result = next(one for one in document["results"] if one["variant"] == str(VARIANT))
        manifest = model / "engines" / str(VARIANT) / "engine.json"
        result.update(engine_sha256=sha256(manifest), threads=1)
        rows = [{**result["latency"][0], "shape": ROW.shape.sizes}]
        document["results"] = [{**result, "latency": rows}]
        return read_report(written(folder / "reports/summary.json", document))

    return project


@pytest.mark.usefixtures("short_rounds")
def test_real_engines(project: Callable[[str], Report], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("records.record", "measure.rounds"):  # other load disturbs nothing
        monkeypatch.setattr(f"tightrope.{name}.MAX_FOREIGN_CORES", math.inf)
    monkeypatch.setattr(module, "QUIET_SECONDS", 0.0)
    found = remeasure(project("old"), project("new"), [ROW], io.StringIO())[ROW]
    assert isinstance(found, Interval), found
    assert 0 < found.low <= found.value <= found.high


@pytest.mark.parametrize(("slower", "verdict"), [(1.0, "same"), (1.05, "slower"), (0.9, "faster")])
def test_the_time_of_the_new_engine_is_told(project, tmp_path, monkeypatch, slower, verdict):
    """The first of each two loads makes 1 % slower for good; blocks scatter by 1 %."""
    journal = tmp_path / "journal"

    def played(engine: Path, _: Path, batches: list[Any], **__: Any) -> Played:
        name = engine.relative_to(tmp_path).parts[0]
        own = 0.002 * (slower if name == "new" else 1.0)

        def seconds(load: int, block: int) -> float:
            scatter = random.Random(f"{load} {block}").uniform(0.99, 1.01)
            return own * (1.01 if load % 2 == 0 else 1.0) * scatter

        return Played(journal, name, seconds, inputs=len(batches))

    monkeypatch.setattr(module, "timed_engine", played)
    monkeypatch.setattr(module, "pinned_processors", lambda threads: [])  # which nothing disturbs
    old, new = project("old"), project("new")
    (change,) = compare(old, new, again=lambda *them: remeasure(*them, io.StringIO())).speed
    assert change.time, change.reason
    assert change.time.value == pytest.approx(slower, rel=0.01)
    assert (change.verdict, change.reference) == (verdict, "itself, side by side")
    assert [one.name for one in asked(journal, "load")] == ["old", "new", "new", "old"]


def test_engines_that_are_not_there_are_told(project, tmp_path):
    old, new = project("old"), project("new")
    manifest = tmp_path / "new/artifacts/tiny/engines" / str(VARIANT) / "engine.json"
    document = json.loads(manifest.read_text())
    document["libraries"]["onnxruntime"] = "1.0"
    written(manifest, document)
    assert "another engine than the one that was" in str(remeasure(old, new, [ROW])[ROW])
    new.results[ROW.key].engine_sha256 = sha256(manifest)
    assert "built with onnxruntime 1.0, here is" in str(remeasure(old, new, [ROW])[ROW])
    manifest.unlink()
    (change,) = compare(old, new, again=remeasure).speed
    assert "not there any more" in str(change.reason)
