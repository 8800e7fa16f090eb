"""What programs on a GPU are made of, run on the CPU: shapes, buffers, padding, attention."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tightrope.artifacts.manifest import write_manifest
from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import Arrays, stack
from tightrope.jobs.child import supervised
from tightrope.runtimes.program_by_shape import MOST_SHAPES, ByShape
from tightrope.runtimes.shapes import Buckets
from tightrope.signature import of_texts
from tightrope.variants import Variant
from tiny_model import LIMITS, LONGEST, TinyModel, evaluation_rows

Build = Callable[[Variant], Path]
FP32 = Variant("cpu", "onnxruntime", "fp32")
# streams of one engine
COUNT = 3
BUCKETS = {"batch": [1, 16], "sequence": [32, LONGEST]}


@pytest.fixture(scope="module")
def batches(tiny: TinyModel) -> list[Arrays]:
    rows = sorted(evaluation_rows(tiny), key=lambda row: len(row["input_ids"]))
    first = stack(rows[:1])
    # other logits of the same program, which must not come into those of before
    other = {**first, "input_ids": first["input_ids"][:, ::-1].copy()}
    return [first, stack(rows[3:6]), stack(rows[-2:]), other]


class Counting:
    """A program that says for which shape it was made."""

    def __init__(self, inputs: Arrays) -> None:
        self.shape = inputs["input_ids"].shape
        self.released = False

    def release(self) -> None:
        self.released = True

    def __call__(self, inputs: Arrays) -> np.ndarray:
        assert inputs["input_ids"].shape == self.shape
        assert not self.released
        return inputs["input_ids"].sum(1, keepdims=True).astype(np.float32)


def ids(batch: int, sequence: int) -> Arrays:
    return {"input_ids": np.ones((batch, sequence), np.int64)}


def test_with_buckets_requests_share_the_programs_of_the_nearest() -> None:
    run = ByShape(lambda: Counting, Buckets({"batch": [1, 4], "sequence": [4, 8]}))
    assert run(ids(3, 5)).tolist() == [[5.0]] * 3
    assert run(ids(4, 8)).shape == (4, 1)
    assert [program.shape for program in run.programs.values()] == [(4, 8)]
    with pytest.raises(ValueError, match="batches of 1 to 4"):
        run(ids(5, 1))


def test_each_shape_has_a_program_made_once_and_the_last_used_are_kept() -> None:
    made: list[Counting] = []

    def make(inputs: Arrays) -> Counting:
        made.append(Counting(inputs))
        return made[-1]

    run = ByShape(lambda: make, None)
    for length in range(1, MOST_SHAPES + 3):
        assert run(ids(2, length)).tolist() == [[length]] * 2
        run(ids(2, 1))
    assert [one.shape for one in made] == [(2, length) for length in range(1, MOST_SHAPES + 3)]
    assert len(run.programs) == MOST_SHAPES and (2, 1) in run.programs
    assert [one.shape for one in made if one.released] == [(2, 2), (2, 3)]


def of_pytorch(checkpoint: Path, buckets: Buckets | None = None) -> tuple[ByShape, Any]:
    """Programs of the module in bf16, and a function that calls it without any."""
    import torch
    from tightrope.model.module import logits_module, runner
    from tightrope.runtimes.cuda_program import CudaProgram, Queue

    module = logits_module(checkpoint, torch.bfloat16)
    run = ByShape(lambda: lambda inputs: CudaProgram(module, inputs, Queue()), buckets)
    return run, runner(module)


def of_onnxruntime(folder: Path, buckets: Buckets | None = None) -> tuple[ByShape, Any]:
    """A session per queue, as on a GPU, where a session computes on one stream, and a plain one."""
    from tightrope.engines.onnxruntime import FILE, open_session, session_options
    from tightrope.engines.onnxruntime_gpu import NO_GRAPH, BoundProgram
    from tightrope.runtimes.cuda_program import CudaProgram, Queue

    options = {"optimization": "all", "spinning": True, "arena": True}

    def session() -> Any:
        return open_session(folder / FILE, session_options(1, options))

    def on_new_queue() -> Any:
        opened = session()
        return lambda inputs: CudaProgram(BoundProgram(opened, NO_GRAPH), inputs, Queue())

    plain = session()
    return ByShape(on_new_queue, buckets), lambda batch: plain.run(None, batch)[0]


RUNS: dict[str, Callable[..., tuple[ByShape, Any]]] = {
    "pytorch": of_pytorch,
    "onnxruntime": of_onnxruntime,
}


@pytest.fixture
def files(runtime: str, tiny: TinyModel, built: Build) -> Path:
    """What the programs of the runtime are made from."""
    return tiny.checkpoint if runtime == "pytorch" else built(FP32).parent


def answers(runtime: str, files: Path, batches: list[Arrays]) -> Any:
    run, plain = RUNS[runtime](files)
    first = [run(batch) for batch in batches]
    copies = [logits.copy() for logits in first]
    again = [run(batch) for batch in batches]
    return first, copies, again, [plain(batch) for batch in batches]


@pytest.mark.parametrize("runtime", RUNS)
def test_logits_through_buffers_are_those_without_and_stay(runtime, files, batches) -> None:
    found = supervised(answers, runtime, files, batches, limits=LIMITS)
    for first, copy, again, plain in zip(*found, strict=True):
        assert first.dtype == np.float32
        np.testing.assert_array_equal(first, copy)
        np.testing.assert_array_equal(first, again)
        np.testing.assert_array_equal(first, plain)


def missing_provider(folder: Path) -> None:
    from tightrope.engines.onnxruntime import FILE, open_session, session_options
    from tightrope.engines.onnxruntime_gpu import cuda_provider

    options = {"optimization": "all", "spinning": True, "arena": True, "graphs": False}
    open_session(folder / FILE, session_options(1, options), [cuda_provider(options)])


def test_a_provider_that_cannot_be_loaded_is_a_failure_not_the_cpu(built: Build) -> None:
    with pytest.raises(WorkFailed, match=r"fell back to CPU.*: CUDA.*not be loaded"):
        supervised(missing_provider, built(FP32).parent, limits=LIMITS)


def products_with(checkpoint: Path, kind: str) -> set[str]:
    import torch
    from tightrope.model.module import example_inputs, logits_module
    from tightrope.runtimes.torch_device import attention
    from tightrope.runtimes.torch_operators import profiled

    module, example = logits_module(checkpoint, torch.float32), example_inputs(of_texts(), 2)
    with torch.inference_mode(), attention(kind):
        return set(profiled(lambda: module(**example)))


def test_the_attention_that_was_asked_for_is_the_one_that_is_recorded(tiny: TinyModel) -> None:
    flash = supervised(products_with, tiny.checkpoint, "flash", limits=LIMITS)
    math = supervised(products_with, tiny.checkpoint, "math", limits=LIMITS)
    assert any("flash" in kind for kind in flash)
    assert not any("flash" in kind for kind in math)
    assert "bmm" in math
    with pytest.raises(WorkFailed, match="No viable backend"):
        supervised(products_with, tiny.checkpoint, "efficient", limits=LIMITS)


def products_in_graph(checkpoint: Path, precision: str) -> Any:
    from tightrope.engines.inductor import exported, in_graph
    from tightrope.model.module import DTYPES, example_inputs, logits_module

    module, example = logits_module(checkpoint, DTYPES[precision]), example_inputs(of_texts(), 2)
    return in_graph(exported(module, of_texts(), 64, example))


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_products_of_an_exported_graph_are_counted_in_their_type(tiny, precision: str) -> None:
    found = supervised(products_in_graph, tiny.checkpoint, precision, limits=LIMITS)
    assert found == {"linear": {precision: 14}, "scaled_dot_product_attention": {precision: 2}}


def quantized_products(checkpoint: Path) -> Any:
    import torch
    from tightrope.engines.compile import quantize
    from tightrope.model.module import example_inputs, logits_module
    from tightrope.runtimes.torch_operators import profiled

    module, example = logits_module(checkpoint, torch.float32), example_inputs(of_texts(), 2)
    plain = module(**example).float()
    quantize(module, "int8-dynamic")
    with torch.inference_mode():
        difference = (module(**example).float() - plain).norm() / plain.norm()
        return profiled(lambda: module(**example)), float(difference)


def test_torchao_rounds_linear_layers_to_int8_and_the_profiler_sees_it(tiny: TinyModel) -> None:
    executed, difference = supervised(quantized_products, tiny.checkpoint, limits=LIMITS)
    # all but the pooler and the head, which see one row of a text
    assert sum(counts.get("int8", 0) for counts in executed.values()) == 12
    assert 1e-5 < difference < 0.05


def in_turn(runtime: str, files: Path, batch: Arrays) -> Any:
    """All programs are queued with the same inputs before any is waited for, then with others."""
    run, _ = RUNS[runtime](files, Buckets(BUCKETS) if runtime == "pytorch" else None)
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


@pytest.mark.parametrize("runtime", RUNS)
def test_programs_on_streams_give_what_the_single_program_gives(runtime, files, batches) -> None:
    """With inputs between host and device, and logits, there are 5 buffers a program."""
    found = supervised(in_turn, runtime, files, batches[2], limits=LIMITS)
    on_streams, alone, buffers = found
    assert buffers == 5 * (COUNT + 1)
    for logits in on_streams:
        np.testing.assert_array_equal(logits, alone)


def measured(checkpoint: Path, batch: Arrays) -> Any:
    from tightrope.measure.accuracy import check_logits
    from tightrope.measure.timed_engine import TimedEngine

    def check(logits: Any, inputs: Arrays) -> None:
        check_logits(logits, inputs, classes=3)

    run, _ = of_pytorch(checkpoint)
    engine = TimedEngine(lambda: (run, {}), [batch], [0], check)
    engine.run = run
    return engine("streams", 0, COUNT, 30.0), len(run.programs)


def test_a_real_engine_is_timed_on_streams_and_keeps_none_of_their_programs(tiny, batches) -> None:
    found, kept = supervised(measured, tiny.checkpoint, batches[2], limits=LIMITS)
    assert kept == 0
    assert len(found.calls) == len(found.seconds) == len(found.gpu) == 5
    assert all(calls > 0 for calls in found.calls)
    assert all(0.2 <= seconds < 5 for seconds in found.seconds)
    assert found.gpu == [None] * 5


# the manifest of an engine, as far as a load reads it
ENGINE: dict[str, Any] = {
    **{"status": "ok", "variant": "cuda-compile-fp16", "precision": "fp16", "options": {}},
    **{"sources": {}, "checkpoint": None, "libraries": {}, "build_s": 1.0},
    "inputs": of_texts().facts(),
}


def refusal(patch: pytest.MonkeyPatch, reason: str | None) -> dict[str, str | None]:
    """What a build says of a program whose capture in PyTorch, which is played, fails so."""
    import torch
    from tightrope.runtimes.cuda_program import CudaProgram, Queue, graphs_of

    @contextmanager
    def capture(graph: Any, *, capture_error_mode: str, **settings: Any) -> Iterator[None]:
        assert capture_error_mode == "thread_local"
        yield
        if reason:
            raise RuntimeError(reason)

    patch.setattr(torch.cuda, "CUDAGraph", lambda: SimpleNamespace(replay=lambda: None))
    patch.setattr(torch.cuda, "graph", capture)
    patch.setattr(torch.cuda, "synchronize", lambda: None)

    def run(inputs: Arrays) -> np.ndarray:
        return CudaProgram(lambda input_ids: 2 * input_ids, inputs, Queue(pool=1))(inputs)

    return graphs_of({"graphs": True}, lambda: run, ids(2, 3))


def test_a_failed_capture_is_the_reason_for_single_launches(monkeypatch, tmp_path) -> None:
    from tightrope.runtimes.cuda_program import with_graphs

    found = refusal(monkeypatch, "not permitted\nwhen capturing")
    assert found == {"graphs_refused": "RuntimeError: not permitted"}
    assert refusal(monkeypatch, None) == {"graphs_refused": None}
    with pytest.raises(RuntimeError, match="out of memory"):
        refusal(monkeypatch, "CUDA error: out of memory")
    for refused in (found, {}):
        write_manifest(tmp_path / "engine.json", **ENGINE, **refused)
        assert with_graphs({"graphs": True}, tmp_path) == {"graphs": not refused}


def test_programs_are_of_measured_shapes_and_the_one_for_any_is_tuned_for_the_largest() -> None:
    from tightrope.runtimes.torch_device import measured, tuned_for

    sizes = {"batch": [1, 32, 128], "sequence": [64, 128, 512]}
    graphs = {"graphs": True, "buckets": sizes, "shapes": [[1, 128], [32, 100], [32, 128]]}
    for options, programs, tuned in (
        (graphs, [(1, 128), (32, 128)], (32, 128)),
        ({**graphs, "graphs": False}, [(1, 128), (32, 100), (32, 128)], (32, 128)),
        # equal sizes would be compiled as one, and one row as a constant
        ({"shapes": [[128, 128]]}, [(128, 128)], (129, 128)),
        ({"shapes": [[1, 64]]}, [(1, 64)], (2, 64)),
        # images, and who names no shapes measures the buckets; a CPU
        ({"graphs": True, "buckets": {"batch": [1, 8]}}, [(1,), (8,)], (8,)),
        ({"shapes": [[16]]}, [(16,)], (16,)),
        ({}, [], (2, 16)),
    ):
        assert (measured(options), tuned_for(options)) == (programs, tuned)


TUNED = {"attention": "auto", "autotune": False, "graphs": True, "shapes": [[3, 16]]}
TUNED |= {"buckets": {"batch": [1, 3], "sequence": [16]}}
SETTINGS: dict[str, Any] = {"precision": "fp32", "device": "cpu", "options": TUNED}


def compile_as_a_build(folder: Path) -> None:
    import torch
    from tightrope.engines import compile
    from torch._inductor.utils import fresh_cache
    from transformers import BertConfig, BertForSequenceClassification

    sizes = {"num_hidden_layers": 0, "hidden_size": 32, "num_attention_heads": 2, "vocab_size": 9}
    BertForSequenceClassification(BertConfig(**sizes, intermediate_size=64)).save_pretrained(folder)
    torch.set_num_threads(1)  # as the load: kernels are generated for a number of threads
    with fresh_cache():
        compile.compiled(folder, of_texts(), **SETTINGS)
        compile.keep_cache(folder / compile.CACHE)


def load_as_elsewhere(folder: Path) -> list[Any]:
    """Whether sizes were free, and the shape, of each call of a program; and of one too many."""
    import torch
    from tightrope.engines import compile
    from torch._dynamo.exc import RecompileError
    from torch._inductor import cpp_builder
    from torch._inductor.utils import fresh_cache

    calls: list[Any] = []
    of_torch, of_shell = torch.compile, cpp_builder.run_compile_cmd

    def recorded(module: Any, *, dynamic: bool, **settings: Any) -> Any:
        program = of_torch(module, dynamic=dynamic, **settings)

        def run(**inputs: Any) -> Any:
            calls.append((dynamic, *inputs["input_ids"].shape))
            return program(**inputs)

        return run

    def no_kernel(command: str, cwd: str) -> None:
        assert "-E" in command.split()  # a header alone
        of_shell(command, cwd)

    cpp_builder.run_compile_cmd = no_kernel
    torch.compile, compile.fresh_cache = recorded, fresh_cache
    run = compile.load(folder, threads=1, **SETTINGS)
    for batch in (3, 1):
        run({**ids(batch, 16), "attention_mask": ids(batch, 16)["input_ids"]})
    with pytest.raises(RecompileError):
        run({**ids(2, 16), "attention_mask": ids(2, 16)["input_ids"]})
    return calls


def test_each_measured_shape_has_a_program_which_a_load_has_of_the_build(tmp_path: Path) -> None:
    """Shapes are padded to buckets, so that what compiles anything after the load is an error."""
    supervised(compile_as_a_build, tmp_path, limits=LIMITS)
    write_manifest(tmp_path / "engine.json", **ENGINE)
    calls = supervised(load_as_elsewhere, tmp_path, limits=LIMITS)
    assert calls == [*[(False, 3, 16), (True, 1, 16)] * 2, (True, 2, 16)]
