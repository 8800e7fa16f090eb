"""Programs of one engine on several streams: run on the CPU, where a queue has no stream."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tightrope.inputs.arrays import Arrays, stack
from tightrope.jobs.child import supervised
from tightrope.runtimes.buckets import Buckets
from tightrope.runtimes.program_by_shape import ByShape
from tightrope.variants import Variant
from tiny_model import LIMITS, LONGEST, TinyModel, evaluation_rows

COUNT = 3
BUCKETS = {"batch": [1, 16], "sequence": [32, LONGEST]}
Build = Callable[[Variant], Path]


@pytest.fixture(scope="module")
def batch(tiny: TinyModel) -> Arrays:
    rows = sorted(evaluation_rows(tiny), key=lambda row: len(row["input_ids"]))
    return stack(rows[-2:])


def pytorch_run(checkpoint: Path, buckets: Buckets | None) -> ByShape:
    import torch
    from tightrope.model.module import logits_module
    from tightrope.runtimes.cuda_program import CudaProgram, Queue

    module = logits_module(checkpoint, torch.float32)
    return ByShape(lambda: lambda inputs: CudaProgram(module, inputs, Queue()), buckets)


def onnxruntime_run(folder: Path) -> ByShape:
    """A session per queue, as on a GPU, where a session computes on one stream."""
    from tightrope.engines.onnxruntime import FILE
    from tightrope.runtimes.cuda_program import CudaProgram, Queue
    from tightrope.runtimes.onnxruntime.gpu import NO_GRAPH, BoundProgram
    from tightrope.runtimes.onnxruntime.session import open_session, session_options

    options = {"optimization": "all", "spinning": True, "arena": True}

    def on_new_queue() -> Any:
        session = open_session(folder / FILE, session_options(1, options))
        return lambda inputs: CudaProgram(BoundProgram(session, NO_GRAPH), inputs, Queue())

    return ByShape(on_new_queue, None)


def in_turn(make: Callable[..., ByShape], *arguments: Any, batch: Arrays) -> Any:
    """All programs are queued with the same inputs before any is waited for, then with others."""
    run = make(*arguments)
    changed = {**batch, "input_ids": batch["input_ids"][::-1].copy()}
    programs, whole = run.on_streams(batch, COUNT)
    others, _ = run.on_streams(changed, 1)
    for program in programs:
        program.enqueue(whole)
    others[0](run.whole(changed))
    rows = len(next(iter(batch.values())))
    buffers = {
        tensor.data_ptr()
        for program in [run.placed(batch)[0], *programs]
        for tensor in (*program.inputs.values(), *program.staged.values(), program.fetched)
    }
    return [program.wait()[:rows] for program in programs], run(batch), len(buffers)


def test_programs_on_streams_give_what_the_single_program_gives_from_buffers_of_their_own(
    tiny: TinyModel, batch: Arrays
) -> None:
    """With inputs between host and device, and logits, there are 5 buffers a program."""
    found = supervised(with_buckets, tiny.checkpoint, batch, limits=LIMITS)
    answers, alone, buffers = found
    assert buffers == 5 * (COUNT + 1)
    for logits in answers:
        np.testing.assert_array_equal(logits, alone)


def with_buckets(checkpoint: Path, batch: Arrays) -> Any:
    return in_turn(pytorch_run, checkpoint, Buckets(BUCKETS), batch=batch)


def test_sessions_of_onnxruntime_on_streams_give_what_the_single_session_gives(
    built: Build, batch: Arrays
) -> None:
    folder = built(Variant("cpu", "onnxruntime", "fp32")).parent
    answers, alone, buffers = supervised(with_sessions, folder, batch, limits=LIMITS)
    assert buffers == 5 * (COUNT + 1)
    for logits in answers:
        np.testing.assert_array_equal(logits, alone)


def with_sessions(folder: Path, batch: Arrays) -> Any:
    return in_turn(onnxruntime_run, folder, batch=batch)


def measured(checkpoint: Path, batch: Arrays) -> Any:
    from tightrope.measure.answers import check_logits
    from tightrope.measure.timed_engine import TimedEngine

    def check(logits: Any, inputs: Arrays) -> None:
        check_logits(logits, inputs, classes=3)

    run = pytorch_run(checkpoint, None)
    engine = TimedEngine(lambda: (run, {}), [batch], [0], check)
    engine.run = run
    return engine("streams", 0, COUNT, 30.0), len(run.programs)


def test_a_real_engine_is_timed_on_streams_and_keeps_none_of_their_programs(
    tiny: TinyModel, batch: Arrays
) -> None:
    found, kept = supervised(measured, tiny.checkpoint, batch, limits=LIMITS)
    assert kept == 0
    assert len(found["calls"]) == len(found["seconds"]) == len(found["gpu"]) == 5
    assert all(calls > 0 for calls in found["calls"])
    assert all(0.2 <= seconds < 5 for seconds in found["seconds"])
    assert found["gpu"] == [None] * 5
