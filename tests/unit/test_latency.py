import json
import random
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tightrope import supervise
from tightrope.errors import ArtifactError, TightropeError
from tightrope.files import sha256
from tightrope.latency import TimedEngine, measure_latency, measure_shape
from tightrope.manifest import write_manifest
from tightrope.records import LatencyRecord
from tightrope.supervise import Child, Limits, WorkFailed
from tightrope.variants import Variant
from tiny_model import LIMITS, LONGEST, TinyModel, name_variant

PLAN = {
    "seconds": 0.1,
    "calls": 20,
    "pairs": 5,
    "warmup_seconds": 0.0,
    "warmup_calls": 2,
    "max_seconds": 20,
}
SHAPES = [{"batch": 1, "sequence": 16}, {"batch": 4, "sequence": LONGEST}]
BASELINE, QUICK = name_variant("pytorch", "fp32"), name_variant("onnxruntime", "fp32")


def wait(seconds: float) -> None:
    """Keep the processor busy: a sleep would end late."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


class Waiting(TimedEngine):
    """A timed engine whose run takes a known time; it writes down when each block ran."""

    def __init__(self, name: str, seconds: float, journal: Path) -> None:
        super().__init__(Path(name), [seconds], threads=1)
        self.run = wait
        self.journal = journal

    def calls(self, *arguments: Any) -> list[float]:
        began = time.monotonic()
        samples = super().calls(*arguments)
        with self.journal.open("a") as stream:
            line = [self.path.name, began, time.monotonic(), len(samples)]
            stream.write(json.dumps(line) + "\n")
        return samples


def race(folder: Path, *seconds: float, **changes: Any) -> tuple[Any, Any, list[list[Any]]]:
    """Blocks of engines `a` and `b`, and what both wrote down."""
    journal = folder / "journal"
    with ExitStack() as stack:
        workers = [
            stack.enter_context(Child(Waiting(name, one, journal), LIMITS))
            for name, one in zip("ab", seconds, strict=False)
        ]
        own, theirs = measure_shape(workers, 0, {**PLAN, **changes}, random.Random(0))
    return own, theirs, [json.loads(line) for line in journal.read_text().splitlines()]


def test_samples_are_the_known_times_and_both_engines_are_measured(tmp_path: Path) -> None:
    own, theirs, _ = race(tmp_path, 0.001, 0.002)
    assert len(own) == len(theirs) == PLAN["pairs"]
    for blocks, seconds in ((own, 0.001), (theirs, 0.002)):
        samples = [sample for block in blocks for sample in block]
        assert min(samples) >= seconds
        assert statistics.median(samples) == pytest.approx(seconds, rel=0.1)


@pytest.mark.parametrize(
    ("seconds", "calls"), [(0.2, 1), (0.001, 33), (0.1, 20)], ids=["time", "calls", "both"]
)
def test_at_least_so_many_calls_and_seconds_are_measured(
    tmp_path: Path, seconds: float, calls: int
) -> None:
    for blocks in race(tmp_path, 0.001, 0.003, seconds=seconds, calls=calls)[:2]:
        samples = [sample for block in blocks for sample in block]
        assert len(samples) >= calls
        assert sum(samples) >= 0.9 * seconds


def test_engines_take_turns_block_by_block_and_never_run_at_once(tmp_path: Path) -> None:
    _, _, journal = race(tmp_path, 0.001, 0.002, pairs=8)
    blocks = journal[2:]
    assert [name for name, *_ in journal[:2]] == ["a", "b"]  # warm-up
    pairs = ["".join(name for name, *_ in blocks[i : i + 2]) for i in range(0, 16, 2)]
    assert set(pairs) == {"ab", "ba"}
    for (_, _, ended, _), (_, began, _, _) in pairwise(journal):
        assert began >= ended


def test_warm_up_is_not_among_the_samples(tmp_path: Path) -> None:
    own, _, journal = race(tmp_path, 0.001, 0.001, warmup_calls=9, seconds=0.001, calls=5)
    assert [count for *_, count in journal[:2]] == [9, 9]
    assert [len(block) for block in own] == [1] * 5


def test_the_baseline_is_measured_alone(tmp_path: Path) -> None:
    own, theirs, journal = race(tmp_path, 0.001)
    assert theirs is None
    assert len(own) == PLAN["pairs"]
    assert {name for name, *_ in journal} == {"a"}


def test_a_slow_engine_is_given_up_after_the_time_limit(tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(WorkFailed, match=r"too slow \(\d calls in 0\.5 s\)") as caught:
        race(tmp_path, 0.2, 0.001, max_seconds=0.5)
    assert not caught.value.transient
    assert time.monotonic() - began < 5


def measured(
    model: TinyModel, engine: Path, baseline: Path, folder: Path, variant: Variant, **options: Any
) -> LatencyRecord:
    facts = {
        "model": "tiny",
        "variant": str(variant),
        "shapes": SHAPES,
        "plan": PLAN,
        "max_sequence": LONGEST,
        "threads": 1,
        "libraries": {"onnxruntime": "1"},
        "limits": LIMITS,
        **options,
    }
    target = folder / "latency.json"
    measure_latency(engine, baseline, model.checkpoint, model.data, target, **facts)
    return LatencyRecord.read(target)


@pytest.fixture(scope="module")
def engines(built: Callable[[Variant], Path]) -> dict[Variant, Path]:
    return {variant: built(variant) for variant in (BASELINE, QUICK)}


@pytest.fixture(scope="module")
def record(
    tiny: TinyModel, engines: dict[Variant, Path], tmp_path_factory: pytest.TempPathFactory
) -> LatencyRecord:
    folder = tmp_path_factory.mktemp("latency")
    return measured(tiny, engines[QUICK], engines[BASELINE], folder, QUICK)


def test_a_record_holds_all_samples_of_all_shapes_beside_the_baselines(
    record: LatencyRecord,
) -> None:
    assert (record.status, record.baseline) == ("ok", str(BASELINE))
    sizes = [{key: shape[key] for key in ("batch", "sequence")} for shape in record.shapes]
    assert sizes == SHAPES
    for shape in record.shapes:
        for name in ("blocks_s", "baseline_blocks_s"):
            samples = [sample for block in shape[name] for sample in block]
            assert len(shape[name]) == PLAN["pairs"]
            assert len(samples) >= PLAN["calls"]
            assert sum(samples) >= 0.9 * PLAN["seconds"]
            assert min(samples) > 0
        assert shape["first_call_s"] > 0


def test_load_first_call_and_memory_are_results_of_their_own(
    record: LatencyRecord, engines: dict[Variant, Path]
) -> None:
    assert record.import_s > 0
    assert record.load_s > 0
    assert record.first_call_s == record.shapes[0]["first_call_s"]
    assert 30e6 < record.peak_rss_bytes < 4e9
    assert record.engine_sha256 == sha256(engines[QUICK])
    assert record.threads == 1


def test_more_tokens_take_more_time(record: LatencyRecord) -> None:
    """16 tokens and 256: what is timed is the engine with that shape."""
    short, long = (
        statistics.median(sample for block in shape["blocks_s"] for sample in block)
        for shape in record.shapes
    )
    assert long > 2 * short


def test_the_baselines_own_record_has_no_baseline(
    tiny: TinyModel, engines: dict[Variant, Path], tmp_path: Path
) -> None:
    engine = engines[BASELINE]
    found = measured(tiny, engine, engine, tmp_path, BASELINE, shapes=SHAPES[:1])
    assert (found.status, found.baseline) == ("ok", None)
    assert found.shapes[0]["baseline_blocks_s"] is None


def test_without_a_baseline_that_runs_the_variant_is_measured_alone(
    tiny: TinyModel, engines: dict[Variant, Path], tmp_path: Path
) -> None:
    lost = tmp_path / "lost" / "engine.json"
    lost.parent.mkdir()
    write_manifest(lost, status="failed", reason="no memory", variant=str(BASELINE))
    found = measured(tiny, engines[QUICK], lost, tmp_path, QUICK, shapes=SHAPES[:1])
    assert (found.status, found.baseline) == ("ok", None)
    assert found.shapes[0]["baseline_blocks_s"] is None


def test_an_engine_that_was_not_built_is_a_failed_record_with_its_reason(
    tiny: TinyModel, engines: dict[Variant, Path], tmp_path: Path
) -> None:
    lost = tmp_path / "lost" / "engine.json"
    lost.parent.mkdir()
    write_manifest(lost, status="failed", reason="no such operator", variant=str(QUICK))
    found = measured(tiny, lost, engines[BASELINE], tmp_path, QUICK)
    assert (found.status, found.reason) == ("failed", "not built: no such operator")
    assert found.shapes == []


def test_a_variant_that_is_too_slow_is_a_failed_record_without_half_its_shapes(
    tiny: TinyModel, engines: dict[Variant, Path], tmp_path: Path
) -> None:
    plan = {**PLAN, "calls": 10**6, "max_seconds": 0.3}
    found = measured(tiny, engines[QUICK], engines[BASELINE], tmp_path, QUICK, plan=plan)
    assert found.status == "failed"
    assert "too slow (" in found.reason
    assert (found.shapes, found.transient) == ([], False)


@pytest.mark.parametrize("harmed", [QUICK, BASELINE], ids=str)
def test_a_harmed_engine_is_an_error_and_no_record(
    tiny: TinyModel, engines: dict[Variant, Path], tmp_path: Path, harmed: Variant
) -> None:
    paths = dict(engines)
    for file in engines[harmed].parent.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    name = next(file.name for file in tmp_path.glob("model.*"))
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-9])
    paths[harmed] = tmp_path / "engine.json"
    with pytest.raises(ArtifactError, match=f"{name}: "):
        measured(tiny, paths[QUICK], paths[BASELINE], tmp_path, QUICK)
    assert not (tmp_path / "latency.json").exists()


def test_a_measurement_beyond_its_limits_is_tried_again_before_it_has_failed(
    tiny: TinyModel,
    engines: dict[Variant, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervise, "POLL_SECONDS", 0.001)  # a block takes no half second
    paths = (engines[QUICK], engines[BASELINE])
    tight = Limits(memory_bytes=1e6, seconds=60, last_attempt=False)
    with pytest.raises(TightropeError, match="another attempt follows"):
        measured(tiny, *paths, tmp_path, QUICK, limits=tight)
    assert not (tmp_path / "latency.json").exists()
    last = Limits(memory_bytes=1e6, seconds=60)
    found = measured(tiny, *paths, tmp_path, QUICK, limits=last)
    assert (found.status, found.transient, found.shapes) == ("failed", True, [])
