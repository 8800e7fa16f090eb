"""Studies of the tiny models' engines, brief ones that wait for no quiet machine."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from short_timing import SHAPE, timing_settings
from tightrope.artifacts.files import read_json
from tightrope.engines.load import load_engine
from tightrope.inputs.arrays import Arrays
from tightrope.jobs.child import Limits
from tightrope.measure.study import measure_study
from tightrope.measure.traffic import measure_traffic
from tightrope.records.traffic import TrafficRecord
from tightrope.studies.table import STUDIES as DECLARED
from tiny_model import EXECUTION, LIMITS, TinyModel, artifacts_of

# what measures, its record, the plan, and the module that loads the engine
STUDIES: dict[str, tuple[Callable[..., None], Any, dict[str, Any], str]] = {
    "throughput": (
        partial(measure_study, "throughput"),
        DECLARED["throughput"],
        {
            **{"batches": [1, 4], "sequence": 16, "instances": [1, 2], "threads": "auto"},
            **{"p99_ms": None, "seconds": 0.2, "max_seconds": 60},
        },
        "timed_engine",
    ),
    "idleness": (
        partial(measure_study, "idleness"),
        DECLARED["idleness"],
        {"pauses": [0.01], "shape": SHAPE, "max_seconds": 60},
        "timed_engine",
    ),
    "traffic": (
        measure_traffic,
        TrafficRecord,
        {
            **{"scenarios": ["offline"], "padding": ["fixed"], "batch": 4, "buckets": 3},
            # so long a bound that other load on the machine does not decide
            **{"seconds": 0.2, "p99_bound_s": 2.0},
        },
        "traffic",
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
    facts: dict[str, Any] | None = None,
    **plan: Any,
) -> Any:
    """The record of that study of an engine; `plan` changes the usual one."""
    measure, record, usual, _ = STUDIES[study]
    settings = replace(
        timing_settings(**{**usual, **plan}),
        quiet_seconds=quiet_seconds,
        execution=replace(EXECUTION, threads=threads, limits=limits),
    )
    names = {"model": "tiny", "variant": read_json(engine)["variant"]}
    measure(artifacts_of(model, engine), target, settings, **names, **facts or {})
    return record.read(target)


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

    patch.setattr(f"tightrope.measure.{STUDIES[study][3]}.load_engine", load)
