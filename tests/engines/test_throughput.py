"""Throughput and first calls after a pause of real tiny engines: what the whole run cannot show.

Its points and calls: workflow/test_whole_run.py. Engines that were not built: test_traffic.py.
"""

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from studies import STUDIES, measured, spoil
from tightrope.errors import TightropeError
from tightrope.studies.instances import BLOCKS
from tightrope.variants import Variant
from tiny_images import SIDE
from tiny_model import LIMITS, TinyModel, name_variant

Build = Callable[[Variant], Path]
Measure = Callable[..., Any]
FP32 = name_variant("onnxruntime", "fp32")
CORES = len(os.sched_getaffinity(0))
two_cores = pytest.mark.skipif(CORES < 2, reason="needs two processors")


@pytest.fixture
def measure(tiny: TinyModel, built: Build, tmp_path: Path) -> Measure:
    """From changes of the plan to the record of throughput with two threads."""
    target = tmp_path / "v.throughput.json"
    return partial(measured, "throughput", tiny, built(FP32), target, threads=2)


@two_cores
def test_the_instances_of_a_point_call_in_a_closed_loop_at_the_same_time(measure: Measure) -> None:
    record = measure()
    assert [tuple(p.division) for p in record.calls] == [*[(1, 2)] * 2, *[(2, 1)] * 2]
    for point in record.calls:
        assert point.reason is None and not point.skipped
        assert len(point.blocks_s) == len(point.waited_s) == point.instances
        assert all(len(blocks) == BLOCKS for blocks in point.blocks_s)
        # the calls of an instance follow one another within the window
        for blocks in point.blocks_s:
            assert sum(call for block in blocks for call in block) <= point.seconds
        assert len(point.calls_s) == sum(len(b) for blocks in point.blocks_s for b in blocks)
        assert point.rate.value > 0
        assert point.peak_rss_bytes > 0
    assert record.spent_s > 0


def test_what_max_seconds_leaves_out_says_so(measure: Measure) -> None:
    first, *others = measure(max_seconds=0.01).calls
    assert first.reason is None
    assert {point.reason for point in others} == {"max_seconds = 0.01 were over"}
    assert all(point.skipped for point in others)


def is_killed(_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("study", STUDIES)
def test_an_engine_that_dies_is_a_failed_record(
    study: str, tiny: TinyModel, built: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch, study, is_killed)
    plan = {"instances": [1]} if study == "throughput" else {}
    target = tmp_path / "v.json"
    target.write_text("of another time")
    first = replace(LIMITS, last_attempt=False)
    with pytest.raises(TightropeError, match=r"onnxruntime-fp32: killed by SIGKILL .*another"):
        measured(study, tiny, built(FP32), target, limits=first, **plan)
    assert not target.exists()
    record = measured(study, tiny, built(FP32), target, **plan)
    assert record.status == "failed" and record.transient
    assert "killed by SIGKILL" in record.reason
    if study == "throughput":
        assert [point.skipped for point in record.calls] == [False, False]
    else:
        assert [one for one in record.calls if hasattr(one, "foreign_cores")] == []


@two_cores
def test_instances_that_fail_leave_the_other_points(
    measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch, "throughput", lambda logits: logits * float("nan"), lambda n: n == 1)
    record = measure()
    assert (record.status, record.reason) == ("ok", None)
    reasons = [point.reason for point in record.calls]
    assert reasons == [None, None, *["gives logits that are not numbers"] * 2]


def test_more_tokens_than_the_model_takes_name_their_key(measure: Measure) -> None:
    with pytest.raises(TightropeError, match=r"throughput\.sequence"):
        measure(sequence=100_000)


def test_images_have_the_size_of_their_model(
    tiny_images: TinyModel, built_images: Build, tmp_path: Path
) -> None:
    plan = {"instances": [1], "batches": [2]}
    target = tmp_path / "v.throughput.json"
    record = measured("throughput", tiny_images, built_images(FP32), target, **plan)
    assert (record.status, record.reason) == ("ok", None)
    assert record.shape == {"height": SIDE, "width": SIDE}
    assert len(record.calls[0].calls_s) > 0
