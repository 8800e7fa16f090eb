"""A changed byte in any kind of artifact: one line that names the file, and nothing is used."""

import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from artifact_files import flip
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, DataManifest, SourceManifest
from tightrope.compare.read import read_report
from tightrope.engines.load import load_engine
from tightrope.errors import ArtifactError
from tightrope.inputs.encode import read_split
from tightrope.int8.calibrate import read_any_cache
from tightrope.measure.run import can_be_timed
from tightrope.onnx.file import load_onnx
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.latency import LatencyRecord
from tightrope.records.race import RaceRecord
from tightrope.summary.document import read_reported, read_summary
from tiny_project import MODEL, Project

CHANGES = 8
VARIANT = "cpu-onnxruntime-int8-minmax-8"
MADE, REPORTS = f"artifacts/{MODEL}", f"reports/{MODEL}"
ENGINE = f"{MADE}/engines/{VARIANT}/engine.json"
ACCURACY = f"{REPORTS}/{VARIANT}.accuracy.json"
LATENCY = f"{REPORTS}/{VARIANT}.latency.json"
SUMMARY = "reports/summary.json"


def load(engine: Path) -> object:
    return load_engine(engine, threads=1)


RECORD = SimpleNamespace()
# the changed file, and what reads it by which path
READERS: list[tuple[str, str, Callable[[Path], object]]] = [
    (f"{MADE}/data/data.json", "", lambda path: read_manifest(path, DataManifest)),
    (f"{MADE}/data/pool.jsonl", f"{MADE}/splits/evaluation.json", read_split),
    (f"{MADE}/splits/evaluation.json", "", read_split),
    (f"{MADE}/source/checkpoint.json", "", lambda path: read_manifest(path, SourceManifest)),
    (
        f"{MADE}/checkpoint/model.safetensors",
        f"{MADE}/checkpoint/checkpoint.json",
        lambda path: read_manifest(path, CheckpointManifest),
    ),
    (f"{MADE}/model.onnx", "", load_onnx),
    (f"{MADE}/quantized/u8s8-minmax-8.onnx", "", load_onnx),
    (f"{MADE}/calibration/minmax-8.json", "", read_any_cache),
    (ENGINE, "", load),
    (f"{MADE}/engines/{VARIANT}/model.onnx", ENGINE, load),
    (ACCURACY, ENGINE, lambda path: can_be_timed(RECORD, path, path.parents[4] / ACCURACY)),
    (LATENCY, "", LatencyRecord.read),
    (ACCURACY, "", AccuracyRecord.read),
    (f"{REPORTS}/{VARIANT}.logits.npy", ACCURACY, AccuracyRecord.read),
    (f"{REPORTS}/cpu.race.json", "", RaceRecord.read),
    (SUMMARY, "", read_summary),
    (SUMMARY, "", read_reported),
    (SUMMARY, "", read_report),
]


@pytest.fixture(scope="module")
def folder(finished: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a run made, in a copy in which each test leaves all as it was."""
    return finished.copy(tmp_path_factory.mktemp("changed") / "project").folder


@pytest.mark.parametrize(("changed", "read", "reader"), READERS)
def test_a_changed_byte_is_one_line_that_names_the_file(folder, changed, read, reader) -> None:
    path, draw = folder / changed, random.Random(changed)
    content = path.read_bytes()
    reader(folder / (read or changed))
    # the first ones are in the digests of JSON
    for place in [30, 120, *(draw.randrange(len(content)) for _ in range(CHANGES))]:
        flip(path, place)
        with pytest.raises(ArtifactError) as caught:
            reader(folder / (read or changed))
        assert str(path) in str(caught.value)
        assert "run again" in str(caught.value)
        assert "\n" not in str(caught.value)
        path.write_bytes(content)


def test_a_changed_record_reaches_no_report(onnx_project: Project) -> None:
    project = onnx_project
    before = (project / SUMMARY).read_bytes()
    record = project / LATENCY
    text = record.read_text()
    record.write_text(text.replace('"calls": 4', '"calls": 5', 1))
    done = project.snakemake()
    assert done.returncode != 0
    line = (
        f"error: {LATENCY}: its content is not what was written (changed by hand or damaged); "
        "delete it and run again"
    )
    assert line in done.stdout
    assert "Traceback" not in done.stdout
    assert (project / SUMMARY).read_bytes() == before
    # that is the way on
    record.unlink()
    assert f"measure_latency/{MODEL}-{VARIANT}" in project.plan()
