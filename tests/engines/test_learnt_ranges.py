"""Ranges that a training learnt are those of the engines, whose answers are those of training."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from quantized_training import METHOD, QuantizedTraining, files_of, make_quantized_training
from tightrope.engines.build import build_engine
from tightrope.engines.load import load_engine
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays
from tightrope.int8.cache import read_cache
from tightrope.int8.learnt_ranges import LearntRanges, with_learnt_ranges
from tightrope.jobs.child import supervised
from tightrope.onnx.file import load_onnx
from tightrope.onnx.session import run_onnx
from tightrope.onnx.weights import weighted_nodes
from tiny_model import EXECUTION, LIMITS, OPTIONS, TinyModel, evaluation_rows


@pytest.fixture(scope="module")
def trained(tiny: TinyModel, made_once: Callable[..., Path]) -> QuantizedTraining:
    def make(folder: Path) -> None:
        supervised(partial(make_quantized_training, tiny, folder), limits=LIMITS)

    return files_of(tiny, made_once("quantized-training", make))


@pytest.fixture(scope="module")
def batches(tiny: TinyModel) -> list[Arrays]:
    return [{name: array[None] for name, array in row.items()} for row in evaluation_rows(tiny)]


def learnt(trained: QuantizedTraining) -> dict[str, Any]:
    return json.loads(trained.checkpoint.read_text())["qat"]


def answers_in_training(trained: QuantizedTraining, batches: list[Arrays]) -> np.ndarray:
    """Logits of the fake-quantized PyTorch model, [examples, classes]."""
    import torch
    from tightrope.model.module import load_module, runner
    from tightrope.training.quantization_aware import GRIDS, InputQuantizer, fake_quantized

    torch.set_num_threads(1)
    model, grid = load_module(trained.checkpoint.parent, torch.float32), GRIDS["u8s8"]
    ranges = learnt(trained)["ranges"]
    quantizers = {name: InputQuantizer(grid, *pair) for name, pair in ranges.items()}
    with fake_quantized(model, quantizers, grid):
        run = runner(lambda **inputs: model(**inputs).logits)
        return np.concatenate([run(batch) for batch in batches])


def test_onnx_runtime_computes_what_was_trained(
    trained: QuantizedTraining, batches: list[Arrays]
) -> None:
    found = np.concatenate(run_onnx(load_onnx(trained.u8s8), batches, threads=1))
    exact = np.concatenate(run_onnx(load_onnx(trained.simplified), batches, threads=1))
    expected = supervised(partial(answers_in_training, trained, batches), limits=LIMITS)
    assert np.abs(found - expected).max() < 0.02 * np.abs(exact - expected).max()


def test_each_linear_layer_reads_its_learnt_range(
    trained: QuantizedTraining, tiny: TinyModel
) -> None:
    cache, ranges = read_cache(trained.cache, model=trained.simplified), learnt(trained)["ranges"]
    nodes = weighted_nodes(load_onnx(trained.simplified))
    assert {node.name for node in nodes} == set(ranges)
    assert all(cache["ranges"][node.input[0]] == ranges[node.name] for node in nodes)
    # what attention multiplies has no module, so its range is that of calibration
    assert len(cache["ranges"]) > len({node.input[0] for node in nodes})
    assert cache["method"] == "qat"


def test_scaled_and_transposed_weights_are_those_of_their_module(
    trained: QuantizedTraining,
) -> None:
    known, ranges = LearntRanges(trained.checkpoint), learnt(trained)["ranges"]
    model = load_onnx(trained.simplified)
    scaled = [one.name for one in model.graph.initializer if "scaled" in one.name]
    assert scaled  # that of attention, in the weights of the queries
    factors = np.linspace(-2, 2, 64, dtype=np.float32)[:, None]
    name = "bert.encoder.layer.0.output.dense"
    weight = next(one for one in known.modules if one == name)
    assert known.of_weights(factors * known.modules[weight]) == ranges[name]
    assert known.of_weights(known.modules[weight] + 0.01) is None


def test_a_checkpoint_that_learnt_no_ranges_is_refused(
    trained: QuantizedTraining, tiny: TinyModel
) -> None:
    with pytest.raises(TightropeError, match="no ranges were learnt; give the model a qat recipe"):
        LearntRanges(tiny.checkpoint)
    with pytest.raises(TightropeError, match="no operator has the weights of"):
        with_learnt_ranges({}, tiny.simplified, trained.checkpoint)


def test_openvino_runs_the_quantized_file(
    trained: QuantizedTraining, batches: list[Arrays], tmp_path: Path
) -> None:
    manifest = tmp_path / "engine" / "engine.json"
    options = {"reduce_range": False, **OPTIONS["openvino"]}
    name = f"cpu-openvino-int8-{METHOD}"
    build_engine(name, trained.u8s8, manifest, execution=EXECUTION, options=options)
    engine = json.loads(manifest.read_text())
    assert engine["status"] == "ok", engine["reason"]
    products = engine["executed"]["FullyConnected"]
    # where there are no VNNI instructions the pooler and the classifier are such products too
    assert list(products) == ["int8"]
    assert products["int8"] >= 12
    found = supervised(partial(run_engine, manifest, batches), limits=LIMITS)
    expected = np.concatenate(run_onnx(load_onnx(trained.u8s8), batches, threads=1))
    assert (found.argmax(1) == expected.argmax(1)).mean() > 0.95


def run_engine(manifest: Path, batches: list[Arrays]) -> np.ndarray:
    run, _ = load_engine(manifest, threads=1)
    return np.concatenate([run(batch) for batch in batches])


def answers_of_inductor(trained: QuantizedTraining, batches: list[Arrays]) -> np.ndarray:
    """Logits of what AOTInductor compiles, run as it is."""
    import torch
    from tightrope.engines.inductor import exported, quantized
    from tightrope.model.module import logits_module, runner
    from tightrope.signature import of_checkpoint

    torch.set_num_threads(1)
    manifest = json.loads(trained.checkpoint.read_text())
    module = logits_module(trained.checkpoint, torch.float32)
    with torch.no_grad():
        graph = exported(module, of_checkpoint(manifest), manifest["max_sequence"], "cpu")
        made = quantized(graph.module(), trained.samples, reduced=False)
    run = runner(made)
    # the exporter would fix a size of 1
    return np.concatenate(
        [run({k: np.repeat(v, 2, 0) for k, v in one.items()})[:1] for one in batches]
    )


def test_inductor_quantizes_with_the_learnt_ranges(
    trained: QuantizedTraining, batches: list[Arrays]
) -> None:
    found = supervised(partial(answers_of_inductor, trained, batches[:20]), limits=LIMITS)
    exact = np.concatenate(run_onnx(load_onnx(trained.simplified), batches[:20], threads=1))
    expected = np.concatenate(run_onnx(load_onnx(trained.u8s8), batches[:20], threads=1))
    assert np.abs(found - expected).max() < 0.1 * np.abs(exact - expected).max()
