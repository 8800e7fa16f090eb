"""Latency records whose blocks are planted, and what else is known of an engine before a race."""

import io
from pathlib import Path
from typing import Any

from accuracy_records import accuracy_record
from disturbed import facts
from msgspec import convert
from raced import HOST, SHAPE
from tightrope.artifacts.files import sha256
from tightrope.decide.finalists import RaceSettings
from tightrope.jobs.child import Limits
from tightrope.jobs.execution import Execution
from tightrope.measure.run import TimingSettings
from tightrope.records.latency import LatencyRecord, TimedShape
from tiny_model import LIMITS, LONGEST

Blocks = list[list[float]]
SHAPES = [{"batch": 1, "sequence": 16}, {"batch": 2, "sequence": LONGEST}]
# of real engines: the fewest rounds, as short as they may be
PLAN = {
    **{"pairs": 4, "loads": 1, "min_seconds": 0.04, "min_calls": 4, "width": 1e-9, "calls": None},
    **{"comparison_seconds": 0.0, "max_seconds": 60.0},
    **{"warmup_seconds": 0.1, "warmup_calls": 2},
}


def latency_shape(blocks: Blocks, baseline: Blocks | None = None, **changes: Any) -> TimedShape:
    """A shape of these blocks, of which other load disturbed none."""
    known = {"first_call_s": 0.1, "stop": "width", "threads_busy": 1, "cores_used": 1.0}
    both = {"blocks_s": blocks, "baseline_blocks_s": baseline, **facts(0, len(blocks))}
    return convert({**SHAPE.sizes, **known, **both, **changes}, TimedShape)


def latency_record(variant: str, *shapes: TimedShape, **changes: Any) -> LatencyRecord:
    """A record of model m with these shapes."""
    known = {
        **{"model": "m", "variant": variant, "host": HOST, "libraries": {}, "threads": 1},
        **{"plan": {"pairs": 12, "loads": 1}, "processors": [0], "shapes": list(shapes)},
    }
    return convert({**known, **changes}, LatencyRecord)


def write_records(
    folder: Path, variant: str, engine: Path, seconds: float, **changes: Any
) -> tuple[Path, Path]:
    """Write latency and accuracy of an engine at SHAPES, of the time of a call given.

    `disturbed` is the number of 12 pairs that other load disturbed.
    """
    known = facts(changes.pop("disturbed", 0), 12)
    known["pairs"] = known["pairs"][:12]
    shapes = [latency_shape([[seconds]] * 12, [[0.01]] * 12, **one, **known) for one in SHAPES]
    same = {"engine_sha256": sha256(engine), **changes}
    model = {"model": same.get("model", "m"), "engine_sha256": same["engine_sha256"]}
    answers = {"labels": [0] * 400, "predictions": [0] * 400, "margins": [1.0] * 400}
    identity = {"variant": variant, "host": HOST, "libraries": {}, "data_sha256": "d", **model}
    folder.mkdir(parents=True, exist_ok=True)
    latency, accuracy = (folder / f"{variant}.{kind}.json" for kind in ("latency", "accuracy"))
    latency_record(variant, *shapes, **{"peak_rss_bytes": 10**8, **same}).write(latency)
    accuracy_record(**identity, **answers, logits=[[1.0, 0.0]] * 400).write(accuracy)
    return latency, accuracy


def timing_settings_of_races(limits: Limits = LIMITS, shapes: Any = SHAPES) -> TimingSettings:
    """Settings of a race at these shapes that waits for no quiet machine."""
    known = {"shapes": shapes, "plan": PLAN, "quiet_seconds": 0.0, "max_sequence": LONGEST}
    execution = Execution(threads=1, limits=limits, libraries={})
    return TimingSettings(**known, execution=execution, terminal=io.StringIO())


def race_settings(baseline: str, *, accept_disturbed: bool = False) -> RaceSettings:
    """Settings of a race that ends as soon as each load has its fewest rounds."""
    known = {"decision": {"seconds": 0.0, "equal_within": 0.02}, "budget": 0.01}
    return RaceSettings(baseline=baseline, accept_disturbed=accept_disturbed, **known)
