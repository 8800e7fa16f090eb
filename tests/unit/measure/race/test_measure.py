"""Real engines of the tiny model in a race; what was measured before it is planted."""

import io
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from accuracy_records import accuracy_record
from busy import PROCESSORS
from disturbed import facts
from raced import HOST
from tightrope.artifacts.files import sha256
from tightrope.engines.load import load_engine
from tightrope.jobs.child import Limits
from tightrope.jobs.execution import Execution
from tightrope.machine.cores import pinned_processors
from tightrope.measure.race import measure as module
from tightrope.measure.race.at_shape import FEWEST_OF_LOAD
from tightrope.measure.race.measure import (
    Entrants,
    RaceSettings,
    only,
    race_finalists,
    those_that_fit,
)
from tightrope.measure.settings import TimingSettings
from tightrope.plan.disturbed_records import is_disturbed
from tightrope.records.finalists import Finalists
from tightrope.records.latency import LatencyRecord
from tightrope.records.race import RaceRecord
from tightrope.variants import Variant
from tiny_model import LIMITS, LONGEST, TinyModel, name_variant

PLAN = {
    "pairs": 4,
    "loads": 1,
    "min_seconds": 0.04,
    "min_calls": 4,
    "width": 1e-9,
    "comparison_seconds": 0.0,
    "calls": None,
    "warmup_seconds": 0.2,
    "warmup_calls": 2,
    "max_seconds": 20.0,
}
SHAPES = [{"batch": 1, "sequence": 16}, {"batch": 2, "sequence": LONGEST}]
BASELINE, QUICK = name_variant("pytorch", "fp32"), name_variant("onnxruntime", "fp32")
INT8 = name_variant("onnxruntime", "int8")
VARIANTS = (BASELINE, QUICK, INT8)


class Candidates:
    """Engines with latencies and accuracies that make them `speedup` times as fast."""

    def __init__(self, model: TinyModel, built: Callable[[Variant], Path], folder: Path) -> None:
        self.model = model
        self.built = built
        self.folder = folder
        self.terminal = io.StringIO()

    def latency(self, variant: Variant, speedup: float, **changes: Any) -> Path:
        alone = variant == BASELINE
        known = {
            "first_call_s": 0.1,
            "stop": "width",
            "blocks_s": [[0.01 / speedup]] * 12,
            "baseline_blocks_s": None if alone else [[0.01]] * 12,
            **facts(0, 12),
            **changes.pop("shape", {}),
        }
        record = LatencyRecord(
            **{
                **{"model": "tiny", "variant": str(variant), "host": HOST, "libraries": {}},
                **{"threads": 1, "plan": {"pairs": 12, "loads": 1}, "processors": [0]},
                **{"engine_sha256": sha256(self.built(variant))},
                **{"peak_rss_bytes": 10**8, "shapes": [{**shape, **known} for shape in SHAPES]},
                **changes,
            }
        )
        path = self.folder / f"{variant}.latency.json"
        record.write(path)
        return path

    def accuracy(self, variant: Variant, **changes: Any) -> Path:
        given = {"labels": [0] * 400, "predictions": [0] * 400, "data_sha256": "d"}
        known = {"margins": [1.0] * 400, "logits": [[1.0, 0.0]] * 400, **given, **changes}
        names = {"model": "tiny", "variant": str(variant), "host": HOST, "libraries": {}}
        names["engine_sha256"] = sha256(self.built(variant))
        path = self.folder / f"{variant}.accuracy.json"
        accuracy_record(**names, **known).write(path)
        return path

    def race(
        self,
        speedups: dict[Variant, float],
        *,
        accept_disturbed: bool = False,
        limits: Limits = LIMITS,
        seconds: float = 0.5,
        changes: dict[Variant, dict[str, Any]] | None = None,
    ) -> RaceRecord:
        """The record of the race of these variants, each with what is known of it."""
        of = changes or {}
        target = self.folder / "cpu.race.json"
        race_finalists(
            Entrants(
                engines=[self.built(variant) for variant in speedups],
                latencies=[
                    self.latency(one, ratio, **of.get(one, {})) for one, ratio in speedups.items()
                ],
                accuracies=[self.accuracy(one) for one in speedups],
                checkpoint=self.model.checkpoint,
                data=self.model.split("timing"),
            ),
            target,
            TimingSettings(
                shapes=SHAPES,
                plan=PLAN,
                quiet_seconds=0.0,
                max_sequence=LONGEST,
                execution=Execution(threads=1, limits=limits, libraries={"onnxruntime": "1"}),
                terminal=self.terminal,
            ),
            RaceSettings(
                baseline=str(BASELINE),
                decision={"seconds": seconds, "equal_within": 0.02},
                budget=0.01,
                accept_disturbed=accept_disturbed,
            ),
            model="tiny",
            device="cpu",
        )
        return RaceRecord.read(target)


@pytest.fixture
def candidates(tiny: TinyModel, built: Callable[[Variant], Path], tmp_path: Path) -> Candidates:
    return Candidates(tiny, built, tmp_path)


def timed(shape: dict[str, Any]) -> set[str]:
    """The variants of which a block was timed."""
    return {name for name, blocks in shape["blocks_s"].items() if any(blocks)}


NEAR = dict.fromkeys(VARIANTS, 1.0)


def test_finalists_of_all_shapes_are_timed_in_the_same_rounds(candidates: Candidates) -> None:
    record = candidates.race(NEAR)
    (heat,) = record.heats
    assert [{key: one[key] for key in SHAPES[0]} for one in heat["shapes"]] == SHAPES
    for shape in heat["shapes"]:
        assert set(shape["contenders"]) == timed(shape) == {str(one) for one in VARIANTS}
        assert shape["pairs"] == [[str(INT8), str(QUICK)]]
        assert len(shape["loads"]) >= FEWEST_OF_LOAD
    assert record.seconds > 0
    assert (record.left_out, record.status, record.variant) == ({}, "ok", "race")
    assert record.engines_sha256[str(QUICK)] == sha256(candidates.built(QUICK))
    assert record.processors == pinned_processors(1)
    assert sorted(os.sched_getaffinity(0)) == PROCESSORS
    assert candidates.terminal.getvalue() == ""


def test_a_single_finalist_wins_without_a_process(candidates: Candidates) -> None:
    record = candidates.race({BASELINE: 1.0, QUICK: 3.0})
    (heat,) = record.heats
    for shape in heat["shapes"]:
        assert shape["contenders"] == [str(QUICK)]
        assert (timed(shape), shape["loads"], shape["stop"]) == (set(), [], None)
    assert record.seconds < 2
    assert not is_disturbed(candidates.folder / "cpu.race.json")


def test_those_that_do_not_fit_the_memory_together_race_in_heats(candidates: Candidates) -> None:
    size = {"peak_rss_bytes": 3 * 10**9}
    limits = Limits(memory_bytes=6.5e9, seconds=120)
    record = candidates.race(NEAR, limits=limits, changes=dict.fromkeys(VARIANTS, size))
    first, second = record.heats
    names = {str(one) for one in VARIANTS}
    assert all(len(timed(shape)) == 2 for shape in first["shapes"])
    assert set().union(*(timed(shape) for shape in (*first["shapes"], *second["shapes"]))) == names
    assert candidates.terminal.getvalue() == (
        "tiny: 2 finalists fit in memory together, 1 more follow\n"
    )


def test_who_did_not_win_its_heat_is_not_in_the_next(candidates: Candidates) -> None:
    """Of the two that fit together first one is several times as slow."""
    size = {"peak_rss_bytes": 3 * 10**9}
    limits = Limits(memory_bytes=6.5e9, seconds=120)
    record = candidates.race(
        NEAR, limits=limits, seconds=6.0, changes=dict.fromkeys(VARIANTS, size)
    )
    first, second = record.heats
    for before, after in zip(first["shapes"], second["shapes"], strict=True):
        everywhere = all(set(one["out"]) == set(before["out"]) for one in first["shapes"])
        assert not everywhere or not set(before["out"]) & timed(after)


@pytest.fixture
def spoil(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Has the engine in that path die at its tenth call."""

    def spoil(path: Path) -> None:
        def load(one: Path, **options: Any) -> Any:
            run, seconds = load_engine(one, **options)
            calls = iter(range(10))

            def mortal(inputs: Any) -> Any:
                if next(calls, None) is None:
                    os.kill(os.getpid(), signal.SIGKILL)
                return run(inputs)

            return (mortal if one == path else run), seconds

        monkeypatch.setattr(module, "load_engine", load)

    return spoil


def test_one_that_dies_is_left_out_with_its_reason_and_the_others_go_on(
    candidates: Candidates, spoil: Callable[[Path], None]
) -> None:
    spoil(candidates.built(QUICK))
    record = candidates.race(NEAR)
    assert list(record.left_out) == [str(QUICK)]
    assert record.left_out[str(QUICK)].startswith("killed by SIGKILL")
    for shape in record.heats[0]["shapes"]:
        assert timed(shape) >= {str(BASELINE), str(INT8)}


def test_failed_variants_do_not_take_part(candidates: Candidates) -> None:
    failed = {"status": "failed", "reason": "too slow", "shapes": []}
    record = candidates.race(NEAR, changes={QUICK: failed})
    assert str(QUICK) not in record.engines_sha256
    for shape in record.heats[0]["shapes"]:
        assert set(shape["contenders"]) == {str(BASELINE), str(INT8)}


@pytest.mark.parametrize("accepted", [False, True])
def test_a_disturbed_variant_takes_part_only_where_that_is_accepted(
    candidates: Candidates, accepted: bool
) -> None:
    disturbed = {QUICK: {"shape": facts(10, 2)}}
    record = candidates.race(NEAR, accept_disturbed=accepted, changes=disturbed)
    (heat,) = record.heats
    for shape in heat["shapes"]:
        assert (str(QUICK) in shape["contenders"]) is accepted
    assert is_disturbed(candidates.folder / f"{QUICK}.latency.json")


def test_without_any_candidate_the_record_says_so(candidates: Candidates) -> None:
    lost = {"shape": facts(12, 0)}
    record = candidates.race({BASELINE: 1.0}, changes={BASELINE: lost})
    assert [one["contenders"] for one in record.heats[0]["shapes"]] == [[], []]


@pytest.mark.parametrize(
    ("still", "waiting", "expected"),
    [
        ([], ["a", "b", "c"], ["a", "b"]),
        (["a"], ["b", "c"], ["a", "b"]),
        ([], ["big", "a"], ["big"]),
        (["big"], ["huge", "a"], ["big", "huge"]),
        ([], ["a", "big", "b"], ["a", "b"]),
    ],
)
def test_the_next_one_always_runs_and_others_where_there_is_memory(
    still: list[str], waiting: list[str], expected: list[str]
) -> None:
    memory = {"a": 1.0, "b": 1.0, "c": 1.0, "big": 2.0, "huge": 9.0}
    assert those_that_fit(still, waiting, memory, 2.0) == expected


def test_of_the_finalists_of_a_shape_those_that_run_take_part() -> None:
    chosen = Finalists(["a", "b"], [("c", "b"), ("c", "d")])
    assert only(chosen, ["b", "c"]) == Finalists(["b"], [("c", "b")])
    assert only(chosen, []) == Finalists([], [])
