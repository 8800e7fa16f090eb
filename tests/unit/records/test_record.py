import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accuracy_records import accuracy_record
from artifact_files import without_digests, written
from disturbed import QUIET, WAITED
from gpu_states import STATE
from latency_records import latency_record
from msgspec.structs import replace
from raced import HOST, race_record
from tightrope.errors import ArtifactError
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.latency import LatencyRecord
from tightrope.records.race import RacedShape

SAME: dict[str, Any] = {
    **{"model": "m", "variant": "cpu-onnxruntime-fp32", "host": HOST},
    "libraries": {"onnxruntime": "1"},
}
SHAPE = {
    **{"batch": 1, "sequence": 64, "first_call_s": 0.02, "pairs": [QUIET, WAITED]},
    **{"blocks_s": [[0.1 + 0.2, 1e-9], [0.25]], "baseline_blocks_s": [[0.3], [0.4]]},
    **{"foreign_cores": [0.1 + 0.2, None], "energy_j": [0.1 + 0.2, None], "gpu": [STATE, None]},
    "long_blocks": [{"energy_j": 300.5, "calls": 41, "gpu": STATE}],
}
ROUNDS = {"rounds_s": [0.1]}
LATENCY = latency_record(
    **{**SAME, "threads": 2, "plan": {"pairs": 20}, "processors": [0, 1], "shapes": [SHAPE]},
    **{"reference": {"before": ROUNDS, "after": ROUNDS}, "baseline": "cpu-pytorch-fp32"},
)
ANSWERS = {"labels": [0, 1], "predictions": [0, 0], "margins": [0.5, 0.1]}
ACCURACY = accuracy_record(**SAME, **ANSWERS, logits=[[1.25, 0.75], [-0.1, -0.2]])
RACED = race_record(
    [RacedShape(batch=1, sequence=64, blocks_s={"a": [[0.1 + 0.2], None]})],
    left_out={"cpu-openvino-fp32": "killed by SIGKILL"},
    busiest={"python3 train.py": 0.97},
)
ALL = pytest.mark.parametrize(
    "record", [LATENCY, ACCURACY, RACED], ids=["latency", "accuracy", "race"]
)


def changed(record: Any, path: Path, change: dict[str, Any]) -> None:
    """Write a record, some of whose fields are then set by hand; `...` leaves one out."""
    record.write(path)
    document = {**json.loads(path.read_text()), **change}
    left = {name: value for name, value in document.items() if value is not ...}
    written(path, left)


@ALL
def test_what_was_written_is_read_and_is_sorted_json_without_statistics(record, tmp_path):
    record.write(tmp_path / "a.json")
    assert type(record).read(tmp_path / "a.json") == record
    text = (tmp_path / "a.json").read_text()
    document = json.loads(text)
    assert list(without_digests(document)) == sorted(without_digests(document))
    derived = ("p50", "p90", "mean", "speedup", "top1", "accuracy", "p_value", "verdict")
    assert not [word for word in derived if f'"{word}' in text]


@ALL
def test_a_record_of_another_version_or_kind_is_refused(record, tmp_path):
    changes = [{"surprise": 1}, {"schema": 1}, {"schema": None}, {"model": ...}]
    words = rf"a\.json: no {type(record).__name__} of this version; delete it, run again"
    for change in changes:
        changed(record, tmp_path / "a.json", change)
        with pytest.raises(ArtifactError, match=words):
            type(record).read(tmp_path / "a.json")
    record.write(tmp_path / "a.json")
    other = LatencyRecord if record is ACCURACY else AccuracyRecord
    with pytest.raises(ArtifactError, match=f"no {other.__name__}"):
        other.read(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("record", "change", "words"),
    [
        (LATENCY, {"shapes": None}, ".*shapes`"),
        (ACCURACY, {"predictions": [0, 0.5]}, r".*predictions\[1\]`"),
        (RACED, {"left_out": {"cpu-openvino-fp32": 9}}, r".*left_out\[\.\.\.\]`"),
        # within the contents
        (LATENCY, {"shapes": [{"batch": "1"}]}, r".* got `str` - at `\$\.shapes\[0\]\.batch`"),
        (LATENCY, {"shapes": [{"batch": 1, "p50_s": 1}]}, ".* unknown field `p50_s`"),
        (RACED, {"heats": [{"shapes": [{"out": {"v": {"round": 3}}}]}]}, ".* field `by`"),
    ],
)
def test_a_value_of_another_type_is_refused_and_named(record, change, words, tmp_path):
    changed(record, tmp_path / "a.json", change)
    with pytest.raises(ArtifactError, match=rf"a\.json: {words}.*; delete it, run again"):
        type(record).read(tmp_path / "a.json")


def test_logits_are_in_a_file_that_numpy_reads(tmp_path: Path) -> None:
    ACCURACY.write(tmp_path / "v.accuracy.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["v.accuracy.json", "v.logits.npy"]
    logits = np.load(tmp_path / "v.logits.npy", allow_pickle=False)
    assert logits.dtype == np.float32
    assert (logits == ACCURACY.logits).all()
    assert (AccuracyRecord.read(tmp_path / "v.accuracy.json").logits == logits).all()
    accuracy_record(**SAME, status="failed").write(tmp_path / "v.accuracy.json")
    assert AccuracyRecord.read(tmp_path / "v.accuracy.json").logits.size == 0


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
def test_logits_that_are_not_those_of_the_record_are_refused(tmp_path, harm, words):
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
