"""Studies of the tiny models' engines, brief ones that wait for no quiet machine."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from short_timing import SHAPE, timing_settings
from tightrope.engines.load import load_engine
from tightrope.inputs.arrays import Arrays
from tightrope.jobs.child import Limits
from tightrope.measure.study import measure_study
from tightrope.studies.study import StudyRecord
from tightrope.studies.table import STUDIES as DECLARED
from tiny_model import EXECUTION, LIMITS, TinyModel, artifacts_of

# the settings of each, and the module that loads the engine
STUDIES: dict[str, tuple[dict[str, Any], str]] = {
    "throughput": (
        {
            **{"batches": [1, 4], "sequence": 16, "instances": [1, 2], "threads": "auto"},
            **{"p99_ms": None, "seconds": 0.2, "max_seconds": 60},
        },
        "timed_engine",
    ),
    "idleness": ({"pauses": [0.01], "shape": SHAPE, "max_seconds": 60}, "timed_engine"),
    "traffic": (
        {
            **{"scenarios": ["offline"], "padding": ["fixed"], "batch": 4, "buckets": 3},
            # so long a bound that other load on the machine does not decide
            **{"seconds": 0.2, "p99_bound_s": 2.0},
        },
        "study",
    ),
}


def measured(
    study: str,
    model: TinyModel,
    engine: Path,
    target: Path,
    *,
    limits: Limits = LIMITS,
    threads: int = 1,
    quiet_seconds: float = 0.0,
    **plan: Any,
) -> StudyRecord:
    """The record of that study of an engine; `plan` changes the usual one."""
    settings = replace(
        timing_settings(**{**STUDIES[study][0], **plan}),
        quiet_seconds=quiet_seconds,
        execution=replace(EXECUTION, threads=threads, limits=limits),
    )
    measure_study(study, artifacts_of(model, engine), target, settings)
    return DECLARED[study].read(target)


def spoil(
    patch: pytest.MonkeyPatch,
    study: str,
    act: Callable[[Any], Any],
    when: Callable[[int], bool] = lambda threads: True,
) -> None:
    """Let the real engine do something else with its outputs, `when` says so of its threads."""

    def load(path: Path, *, threads: int) -> tuple[Any, dict[str, float]]:
        run, seconds = load_engine(path, threads=threads)

        def harmed(inputs: Arrays) -> Any:
            logits = run(inputs)
            return act(logits) if when(threads) else logits

        return harmed, seconds

    patch.setattr(f"tightrope.measure.{STUDIES[study][1]}.load_engine", load)
