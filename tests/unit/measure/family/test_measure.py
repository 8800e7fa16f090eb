"""Real engines of a tiny model and of a model that starts from it, timed in the same rounds."""

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from accuracy_records import accuracy_record
from artifact_files import written
from disturbed import facts
from raced import HOST, race_record, race_shape
from tightrope.artifacts.files import sha256
from tightrope.jobs.child import Limits
from tightrope.jobs.execution import Execution
from tightrope.measure.family.heats import in_groups
from tightrope.measure.family.measure import FamilyFiles, race_family
from tightrope.measure.race.at_shape import FEWEST_OF_LOAD
from tightrope.measure.race.measure import RaceSettings
from tightrope.measure.settings import TimingSettings
from tightrope.records.family import FamilyRecord, measured_ratio, shapes_at
from tightrope.records.latency import LatencyRecord
from tightrope.variants import Variant
from tiny_model import LIMITS, LONGEST, TinyModel, name_variant

PLAN = {
    **{"pairs": 4, "loads": 1, "min_seconds": 0.04, "min_calls": 4, "width": 1e-9},
    **{"comparison_seconds": 0.0, "calls": None, "warmup_seconds": 0.1, "warmup_calls": 2},
    "max_seconds": 20.0,
}
SHAPES = [{"batch": 1, "sequence": 16}, {"batch": 2, "sequence": LONGEST}]
BASELINE, QUICK = name_variant("pytorch", "fp32"), name_variant("onnxruntime", "fp32")
INT8 = name_variant("onnxruntime", "int8")


class Family:
    """The files of a root, `large`, and of `small`, which starts from it; both the tiny model."""

    def __init__(self, model: TinyModel, built: Callable[[Variant], Path], folder: Path) -> None:
        self.model = model
        self.built = built
        self.folder = folder

    def record(self, name: str, variant: Variant, *, seconds: float, **changes: Any) -> list[Path]:
        """Latency and accuracy of a variant."""
        known = {"first_call_s": 0.1, "stop": "width", "blocks_s": [[seconds]] * 12}
        alone = variant == BASELINE
        theirs = {"baseline_blocks_s": None if alone else [[0.01]] * 12}
        same = {"model": name, "variant": str(variant), "host": HOST, "libraries": {}}
        same["engine_sha256"] = sha256(self.built(variant))
        latency = LatencyRecord(
            **same,
            **{"threads": 1, "plan": {"pairs": 12, "loads": 1}, "processors": [0]},
            **{
                "peak_rss_bytes": 10**8,
                "shapes": [{**shape, **known, **theirs, **facts(0, 12)} for shape in SHAPES],
                **changes,
            },
        )
        answers = {"labels": [0] * 400, "predictions": [0] * 400, "margins": [1.0] * 400}
        accuracy = accuracy_record(**same, **answers, logits=[[1.0, 0.0]] * 400, data_sha256="d")
        paths = [self.folder / name / f"{variant}.{kind}.json" for kind in ("latency", "accuracy")]
        for path, one in zip(paths, (latency, accuracy), strict=True):
            path.parent.mkdir(exist_ok=True)
            one.write(path)
        return paths

    def race(self, name: str, variant: Variant) -> Path:
        """The record of a race that had only this finalist."""
        shapes = [race_shape({str(variant): []}, stop=None, **shape) for shape in SHAPES]
        path = self.folder / name / "cpu.race.json"
        race_record(shapes, model=name).write(path)
        return path

    def checkpoint(self, name: str, source: str, **changes: Any) -> Path:
        """The manifest of a copy of the tiny checkpoint, which says where it came from."""
        folder = self.folder / "artifacts" / name / "checkpoint"
        shutil.copytree(self.model.checkpoint.parent, folder)
        path = folder / "checkpoint.json"
        manifest = json.loads(path.read_text())
        written(path, {**manifest, "source": source, **changes})
        return path

    def run(
        self,
        runs: list[tuple[str, Variant, list[Path]]],
        checkpoints: list[Path],
        races: list[Path],
        *,
        limits: Limits = LIMITS,
    ) -> FamilyRecord:
        """The record of the family."""
        target = self.folder / "cpu.family.json"
        race_family(
            FamilyFiles(
                engines=[self.built(variant) for _, variant, _ in runs],
                latencies=[paths[0] for _, _, paths in runs],
                accuracies=[paths[1] for _, _, paths in runs],
                races=races,
                checkpoints=checkpoints,
                data=[self.model.split("timing")] * len(checkpoints),
            ),
            target,
            TimingSettings(
                shapes=SHAPES,
                plan=PLAN,
                quiet_seconds=0.0,
                max_sequence=LONGEST,
                execution=Execution(threads=1, limits=limits, libraries={}),
                terminal=io.StringIO(),
            ),
            RaceSettings(
                baseline=str(BASELINE),
                decision={"seconds": 0.2, "equal_within": 0.02},
                budget=0.01,
                accept_disturbed=True,
            ),
            root="large",
            device="cpu",
        )
        return FamilyRecord.read(target)


@pytest.fixture
def family(tiny: TinyModel, built: Callable[[Variant], Path], tmp_path: Path) -> Family:
    return Family(tiny, built, tmp_path)


def of_both(family: Family, **small: Any) -> FamilyRecord:
    """The record of both models; `small` changes the second one's manifest."""
    runs = [
        ("large", BASELINE, family.record("large", BASELINE, seconds=0.01)),
        ("large", INT8, family.record("large", INT8, seconds=0.004)),
        ("large", QUICK, family.record("large", QUICK, seconds=0.005)),
        ("small", QUICK, family.record("small", QUICK, seconds=0.003)),
    ]
    checkpoints = [
        family.checkpoint("large", "path:tiny"),
        family.checkpoint("small", "model:large", **small),
    ]
    races = [family.race("large", QUICK), family.race("small", QUICK)]
    return family.run(runs, checkpoints, races)


def test_the_root_and_its_child_share_rounds_at_all_shapes_and_nobody_drops_out(
    family: Family,
) -> None:
    record = of_both(family)
    names = {f"large/{one}" for one in (BASELINE, INT8, QUICK)} | {f"small/{QUICK}"}
    assert (record.model, record.variant, record.status) == ("large", "family", "ok")
    assert (record.unraced, record.left_out) == ({}, {})
    assert set(record.engines_sha256) == names
    (heat,) = record.heats
    for shape in heat["shapes"]:
        assert shape["chosen"] == {"large": f"large/{QUICK}", "small": f"small/{QUICK}"}
        assert (shape["baseline"], shape["quantized"]) == (f"large/{BASELINE}", f"large/{INT8}")
        assert set(shape["blocks_s"]) == names
        assert all(None not in blocks for blocks in shape["blocks_s"].values())
        assert set(shape["loads"]) == {0, 1}
        assert len(shape["loads"]) >= 2 * FEWEST_OF_LOAD
        assert shape["out"] == {}
    for place in range(2):
        again = measured_ratio(
            shapes_at(record, place), f"small/{QUICK}", f"large/{QUICK}", all_rounds=True
        )
        # the same engine twice, on a machine that other tests use
        assert again is not None
        assert 0.3 < again.value < 3


def test_a_member_of_another_task_is_left_out_with_the_reason(family: Family) -> None:
    record = of_both(family, task="image-classification")
    assert record.unraced == {
        "small": "its task is image-classification, that of large text-classification"
    }
    assert set(record.heats[0]["shapes"][0]["chosen"]) == {"large"}


def test_a_family_without_two_engines_says_why(family: Family) -> None:
    failed = {"status": "failed", "reason": "out of memory", "shapes": []}
    runs = [
        ("large", BASELINE, family.record("large", BASELINE, seconds=0.01)),
        ("small", QUICK, family.record("small", QUICK, seconds=0.003, **failed)),
    ]
    checkpoints = [
        family.checkpoint("large", "path:tiny"),
        family.checkpoint("small", "model:large"),
    ]
    races = [family.race("large", BASELINE), family.race("small", QUICK)]
    record = family.run(runs, checkpoints, races)
    assert record.status == "failed"
    assert record.reason == (f"fewer than two engines to compare; small: {QUICK}: out of memory")
    assert record.heats == []


def test_the_engines_that_all_are_compared_with_run_in_each_heat() -> None:
    memory = dict.fromkeys("abcde", 2.0)
    assert in_groups(["a", "b"], ["c", "d", "e"], memory, 8.0) == [
        ["a", "b", "c", "d"],
        ["a", "b", "e"],
    ]
    assert in_groups(["a", "b"], [], memory, 8.0) == [["a", "b"]]
    assert in_groups(["a", "b"], ["c"], memory, 1.0) == [["a", "b", "c"]]
