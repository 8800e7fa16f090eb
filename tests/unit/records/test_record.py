import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accuracy_records import accuracy_record
from artifact_files import without_digests, written
from disturbed import QUIET, WAITED
from gpu_states import STATE
from tightrope.errors import ArtifactError
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.latency import LatencyRecord
from tightrope.records.race import RaceRecord
from tightrope.records.record import RACE
from tightrope.records.traffic import TrafficRecord

HOST = {"cpu": "a", "isa": [], "cores": 2, "gpu": None, "driver": None}
LATENCY = LatencyRecord(
    model="m",
    variant="cpu-onnxruntime-fp32",
    host=HOST,
    libraries={"onnxruntime": "1"},
    threads=2,
    plan={"pairs": 20},
    processors=[0, 1],
    reference={"before": {"rounds_s": [0.1]}, "after": {"rounds_s": [0.1]}},
    baseline="cpu-pytorch-fp32",
    load_s=0.1,
    first_call_s=0.02,
    peak_rss_bytes=10**9,
    shapes=[
        {
            "batch": 1,
            "sequence": 64,
            "first_call_s": 0.02,
            "blocks_s": [[0.1 + 0.2, 1e-9], [0.25]],
            "baseline_blocks_s": [[0.3], [0.4]],
            "pairs": [QUIET, WAITED],
            "foreign_cores": [0.1 + 0.2, None],
            "energy_j": [0.1 + 0.2, None],
            "gpu": [STATE, None],
            "long_blocks": [{"energy_j": 300.5, "calls": 41, "gpu": STATE}],
        }
    ],
)
ACCURACY = accuracy_record(
    model="m",
    variant="cpu-onnxruntime-fp32",
    host=HOST,
    libraries={},
    labels=[0, 1],
    predictions=[0, 0],
    margins=[0.5, 0.1],
    logits=[[1.25, 0.75], [-0.1, -0.2]],
)
TRAFFIC = TrafficRecord(
    model="m",
    variant="cpu-onnxruntime-fp32",
    host=HOST,
    libraries={"mlcommons-loadgen": "1"},
    threads=2,
    plan={"padding": ["fixed"]},
    longest=64,
    tests=[{"name": "fixed", "scenario": "offline", "valid": True, "samples_per_s": 0.1 + 0.2}],
)
RACED = RaceRecord(
    model="m",
    variant=RACE,
    device="cpu",
    host=HOST,
    libraries={"onnxruntime": "1"},
    threads=2,
    plan={"pairs": 20},
    decision={"seconds": 60, "equal_within": 0.02},
    processors=[0, 1],
    engines_sha256={"cpu-onnxruntime-fp32": "a"},
    left_out={"cpu-openvino-fp32": "killed by SIGKILL"},
    heats=[{"shapes": [{"batch": 1, "sequence": 64, "blocks_s": {"a": [[0.1 + 0.2], None]}}]}],
    seconds=0.1 + 0.2,
    busiest={"python3 train.py": 0.97},
)
ALL = pytest.mark.parametrize(
    "record", [LATENCY, ACCURACY, TRAFFIC, RACED], ids=["latency", "accuracy", "traffic", "race"]
)


@ALL
def test_what_was_written_is_read(record, tmp_path: Path) -> None:
    record.write(tmp_path / "a.json")
    assert type(record).read(tmp_path / "a.json") == record


@ALL
def test_a_record_is_sorted_json_with_its_schema_and_no_statistics(record, tmp_path: Path) -> None:
    record.write(tmp_path / "a.json")
    document = json.loads((tmp_path / "a.json").read_text())
    assert list(without_digests(document)) == sorted(without_digests(document))
    assert document["schema"] == 5
    derived = ("p50", "p90", "mean", "speedup", "top1", "accuracy", "p_value", "verdict")
    assert not [word for word in derived if f'"{word}' in (tmp_path / "a.json").read_text()]


@ALL
@pytest.mark.parametrize(
    "change",
    [{"surprise": 1}, {"latency_ms": 1.0}, {"schema": 1}, {"schema": None}],
    ids=str,
)
def test_a_record_of_another_version_is_refused(record, change: dict, tmp_path: Path) -> None:
    record.write(tmp_path / "a.json")
    document = json.loads((tmp_path / "a.json").read_text())
    written(tmp_path / "a.json", {**document, **change})
    with pytest.raises(ArtifactError, match=rf"a\.json: no {type(record).__name__} of this"):
        type(record).read(tmp_path / "a.json")


@ALL
@pytest.mark.parametrize("field", ["model", "host", "status", "engine_sha256", "schema"])
def test_a_record_that_lacks_a_field_is_refused(record, field: str, tmp_path: Path) -> None:
    record.write(tmp_path / "a.json")
    document = json.loads((tmp_path / "a.json").read_text())
    del document[field]
    written(tmp_path / "a.json", document)
    with pytest.raises(ArtifactError, match=r"a\.json: no "):
        type(record).read(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("record", "change", "where"),
    [
        (LATENCY, {"threads": "two"}, "threads"),
        (LATENCY, {"shapes": None}, "shapes"),
        (ACCURACY, {"predictions": [0, 0.5]}, r"predictions\[1\]"),
        (RACED, {"left_out": {"cpu-openvino-fp32": 9}}, r"left_out\[\.\.\.\]"),
    ],
)
def test_a_field_of_another_type_is_refused_and_named(
    record, change: dict, where: str, tmp_path: Path
) -> None:
    record.write(tmp_path / "a.json")
    document = json.loads((tmp_path / "a.json").read_text())
    written(tmp_path / "a.json", {**document, **change})
    with pytest.raises(ArtifactError, match=rf"a\.json: .*{where}`; delete it, run again"):
        type(record).read(tmp_path / "a.json")


def test_a_record_of_the_other_kind_is_refused(tmp_path: Path) -> None:
    LATENCY.write(tmp_path / "a.json")
    with pytest.raises(ArtifactError, match="no AccuracyRecord"):
        AccuracyRecord.read(tmp_path / "a.json")


@pytest.mark.parametrize("text", ["[]", "null", '"ok"'])
def test_json_that_is_no_record_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ArtifactError, match="without a digest of its content"):
        LatencyRecord.read(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("record", "field", "contents", "words"),
    [
        (
            LATENCY,
            "shapes",
            [{"batch": "1"}],
            r"shapes: Expected `int`, got `str` - at `\$\[0\]\.batch`",
        ),
        (LATENCY, "shapes", [{"blocks_s": [0.1]}], r"shapes: Expected `array`, got `float`"),
        (RACED, "heats", [{"shapes": [{"out": {"v": {"round": 3}}}]}], "heats: .* field `by`"),
        (TRAFFIC, "tests", [{"rates": [{"late": "no"}]}], "tests: Expected `int`, got `str`"),
    ],
)
def test_contents_of_another_type_are_named(
    tmp_path: Path, record: Any, field: str, contents: list[Any], words: str
) -> None:
    path = tmp_path / "record.json"
    record.write(path)
    written(path, {**json.loads(path.read_text()), field: contents})
    with pytest.raises(ArtifactError, match=rf"record\.json: {words}"):
        type(record).read(path)


def test_contents_that_no_type_names_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    LATENCY.write(path)
    document = json.loads(path.read_text())
    document["shapes"][0]["of_tomorrow"] = 1
    written(path, document)
    assert LatencyRecord.read(path).shapes[0]["of_tomorrow"] == 1


def test_logits_are_in_a_file_that_numpy_reads(tmp_path: Path) -> None:
    ACCURACY.write(tmp_path / "v.accuracy.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["v.accuracy.json", "v.logits.npy"]
    logits = np.load(tmp_path / "v.logits.npy", allow_pickle=False)
    assert logits.dtype == np.float32
    assert (logits == ACCURACY.logits).all()
    assert (AccuracyRecord.read(tmp_path / "v.accuracy.json").logits == logits).all()


def other_logits(path: Path) -> None:
    np.save(path, ACCURACY.logits + np.float32(1))


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (other_logits, "not the logits of .*v.accuracy.json; delete both and run again"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "not the logits of"),
        (lambda path: path.unlink(), "cannot be read"),
        (lambda path: (path.unlink(), path.mkdir()), "cannot be read|not read"),
    ],
)
def test_logits_that_are_not_those_of_the_record_are_refused(
    tmp_path: Path, harm: Any, words: str
) -> None:
    ACCURACY.write(tmp_path / "v.accuracy.json")
    harm(tmp_path / "v.logits.npy")
    with pytest.raises(ArtifactError, match=rf"v\.logits\.npy: ({words})") as caught:
        AccuracyRecord.read(tmp_path / "v.accuracy.json")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("rows", [np.zeros((3, 2)), np.zeros(2), np.zeros((0, 0))])
def test_as_many_rows_of_logits_as_predictions_are_read(tmp_path: Path, rows: Any) -> None:
    record = replace(ACCURACY)
    record.logits = rows.astype(np.float32)
    record.write(tmp_path / "v.accuracy.json")
    with pytest.raises(ArtifactError, match=r"v\.logits\.npy: no row of logits per prediction"):
        AccuracyRecord.read(tmp_path / "v.accuracy.json")


def test_a_record_of_a_failure_has_a_file_of_logits_too(tmp_path: Path) -> None:
    accuracy_record(
        model="m", variant="v", host=HOST, libraries={}, status="failed", reason="killed"
    ).write(tmp_path / "v.accuracy.json")
    assert AccuracyRecord.read(tmp_path / "v.accuracy.json").logits.size == 0
    assert (tmp_path / "v.logits.npy").is_file()
