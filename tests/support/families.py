"""Families of models: records with planted rounds and answers, and their entries."""

from collections.abc import Mapping
from typing import Any, cast

from accuracy_records import accuracy_record
from manifests import CHECKPOINT
from msgspec.structs import asdict, replace
from raced import PLACE, SHAPE, planted, race_record, race_shape
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.decide.result import LatencyRow, Result
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.family import FAMILY, FamilyRecord, Roles
from tightrope.summary.results import parts_of
from tightrope.summary.runs import Settings

EAGER, INT8 = "cpu-pytorch-fp32", "cpu-openvino-int8-nncf-8"
LARGE, SMALL, TINY = f"large/{INT8}", f"small/{INT8}", f"tiny/{INT8}"
SECONDS = {f"large/{EAGER}": 0.010, LARGE: 0.004, SMALL: 0.002, TINY: 0.001}
CHOSEN = {"large": LARGE, "small": SMALL, "tiny": TINY}
PAIRS = [(one, other) for one in (SMALL, TINY) for other in (f"large/{EAGER}", LARGE)]


def checkpoint(source: str, parameters: int, **changes: Any) -> CheckpointManifest:
    made = {**CHECKPOINT, "source": source, "parameters": parameters, "files": {}, "schema": 1}
    return cast(CheckpointManifest, {**made, **changes})


CHECKPOINTS = {
    "large": checkpoint("path:large", 400, prune={"layers": None}, activation=None),
    "small": checkpoint("model:large", 200, prune={"layers": 3, "intermediate": None}),
    "tiny": checkpoint("model:small", 100, activation="relu", recipe={"epochs": 2}),
    "alone": checkpoint("path:alone", 300),
}


def family(disturbed: int = 0, **changes: Any) -> FamilyRecord:
    """A record of one heat at one shape."""
    roles = Roles(chosen=dict(CHOSEN), baseline=f"large/{EAGER}", quantized=LARGE)
    shape = race_shape(planted(SECONDS), pairs=PAIRS, disturbed=disturbed)
    known = asdict(race_record([shape], model="large", variant=FAMILY))
    return FamilyRecord(**{**known, "roles": [roles], **changes})


def answers(model: str, variant: str, wrong: int, data: str = "d") -> AccuracyRecord:
    """Answers to 1000 examples, the first `wrong` of them wrong."""
    given = {"predictions": [1] * wrong + [0] * (1000 - wrong), "logits": [[1.0, 0.0]] * 1000}
    return accuracy_record(model=model, variant=variant, data_sha256=data, **given)


def result(model: str, variant: str, seconds: float, **changes: Any) -> Result:
    row = LatencyRow(SHAPE, paired_s=seconds, **changes)
    own = Result(model, **parts_of(variant), baseline=None, host=PLACE, status="ok")
    return replace(own, size_bytes=1000, latency=[row])


def known(*, wrong: Mapping[str, int], data: str = "d", accept: bool = False) -> tuple[Any, ...]:
    """What is known besides: `wrong` answers of each model, `data` those of the smallest."""
    records = [answers("large", EAGER, wrong["large"]), answers("small", EAGER, wrong["small"])]
    records += [answers(name, INT8, wrong[name]) for name in ("large", "small")]
    records += [answers("tiny", one, wrong["tiny"], data) for one in (EAGER, INT8)]
    results = [result(model, INT8, seconds) for model, seconds in (("large", 0.004), ("tiny", 0.1))]
    # its speed-up over its own baseline was measured in other minutes
    results += [result("small", INT8, 0.003), result("small", EAGER, 0.006)]
    results += [result("large", EAGER, 0.010, energy_j=0.5)]
    judged = {(one.model, one.variant): one for one in records}
    baselines = {name: {"cpu": EAGER} for name in CHECKPOINTS}
    settings = Settings(
        unavailable=[], baselines=baselines, budget_points=1.0, accept_disturbed=accept
    )
    return results, judged, CHECKPOINTS, settings


EQUAL = {"large": 100, "small": 100, "tiny": 100}
