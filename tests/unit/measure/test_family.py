"""Real engines of a tiny model and of a model that starts from it, timed in the same rounds."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from artifact_files import rewrite
from latency_records import PLAN, SHAPES, race_settings, timing_settings_of_races, write_records
from raced import race_record, race_shape
from tightrope.decide.finalists import Finalists
from tightrope.machine.interference import Block
from tightrope.measure.family import PRECISE, FamilyAtShape, engines_in, race_family, references_of
from tightrope.measure.race import fewest_heats
from tightrope.records.family import FamilyRecord, Roles
from tightrope.records.race import RacedShape
from tiny_model import name_variant

FLOAT = name_variant("onnxruntime", "fp32")


@pytest.fixture
def family(tiny, built, tmp_path) -> Callable[..., FamilyRecord]:
    """The record of `large` and of `small`, which starts from it, both with a variant in float.

    Both are the tiny model; `manifest` changes that of `small`, `records` its records.
    """

    def files_of(name: str, manifest: dict[str, str], **changes: Any) -> list[Path]:
        """Records of latency, accuracy and a race, and the checkpoint."""
        written = write_records(
            tmp_path / name, str(FLOAT), built(FLOAT), 0.01, model=name, **changes
        )
        shapes = [race_shape({str(FLOAT): []}, stop=None, **shape) for shape in SHAPES]
        race, checkpoint = tmp_path / name / "cpu.race.json", tmp_path / f"{name}/checkpoint"
        race_record(shapes, model=name).write(race)
        shutil.copytree(tiny.checkpoint.parent, checkpoint, dirs_exist_ok=True)
        return [*written, race, rewrite(checkpoint / "checkpoint.json", **manifest)]

    def family(manifest: dict[str, Any] | None = None, **records: Any) -> FamilyRecord:
        small = files_of("small", {"source": "model:large", **(manifest or {})}, **records)
        both = zip(files_of("large", {"source": "path:tiny"}), small, strict=True)
        kinds = ("latencies", "accuracies", "races", "checkpoints")
        every = dict(zip(kinds, map(list, both), strict=True))
        data = [tiny.split("timing")] * 2
        files = {"engines": [built(FLOAT)] * 2, "data": data, **every}
        settings = timing_settings_of_races(), race_settings(str(FLOAT), accept_disturbed=True)
        race_family(tmp_path / "f.json", *settings, root="large", device="cpu", **files)
        return FamilyRecord.read(tmp_path / "f.json")

    return family


def test_a_member_of_another_task_or_without_an_engine_is_left_out(family: Any) -> None:
    task, failed = "image-classification", {"status": "failed", "reason": "memory", "shapes": []}
    for changes, reason in (
        ({"manifest": {"task": task}}, f"its task is {task}, that of large text-classification"),
        (failed, f"{FLOAT}: memory"),
    ):
        record = family(**changes)
        assert record.unraced == {"small": reason}
        assert (record.status, record.heats) == ("failed", [])
        assert record.reason == f"fewer than two engines to compare; small: {reason}"


def test_nobody_drops_out_and_rounds_end_when_all_ratios_are_precise() -> None:
    for within, stop in ((0.1, PRECISE), (1e-9, None)):
        shape, pairs = RacedShape(batch=1, foreign_cores=[0.0]), [("a", "b"), ("a", "c")]
        race = FamilyAtShape(0, shape, Finalists([], pairs), within, PLAN, 1)
        counted = {"seconds": 1.0, "waited_s": 0.0, "stolen_s": 0.0, "preempted": 0}
        blocks = {one: Block(samples_s=[ord(one) / 1e4], **counted) for one in "abc"}
        for number in range(20):
            if shape.stop is None:
                race.begin(number % 2, 0.0)
                race.keep(blocks, window=0)
                race.look()
        assert (shape.stop, race.running(), shape.out) == (stop, ["a", "b", "c"], {})
    race.bury("a")
    assert race.running() == ["b", "c"]


def test_all_are_compared_with_the_engines_of_the_root_and_with_that_of_the_parent() -> None:
    chosen = {"large": "large/b", "small": "small/a", "least": "least/a"}
    roles = Roles(chosen=chosen, baseline="large/a", quantized="large/c")
    references = references_of(roles, "large")
    assert references == ["large/a", "large/b", "large/c"]
    parents = {"large": None, "small": "large", "least": "small"}
    found = engines_in(roles, "large", parents)
    assert set(found.names) == {*references, *chosen.values()}
    root = {("large/b", "large/a"), ("large/b", "large/c"), ("least/a", "small/a")}
    others = {(name, one) for name in ("small/a", "least/a") for one in references}
    pairs = {frozenset(pair) for pair in found.pairs}
    assert pairs == {frozenset(pair) for pair in root | others}


def test_the_seconds_of_a_race_are_divided_over_the_heats_that_its_engines_need() -> None:
    memory = dict.fromkeys("abcde", 2.1)
    heats = [["a", "b", "c", "d"], ["a", "b", "e"]]
    assert fewest_heats(["a", "b"], ["c", "d", "e"], memory, 8.5) == heats
    assert fewest_heats(["a", "b"], [], memory, 8.5) == [["a", "b"]]
    # two would fit by their sum, one at a time does
    assert fewest_heats([], ["c", "d", "e"], memory, 4.0) == [["c"], ["d"], ["e"]]
    assert fewest_heats(["a", "b"], ["c"], memory, 1.0) == [["a", "b", "c"]]
