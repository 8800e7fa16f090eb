"""Files that round outputs and skip connections too compute what was trained so."""

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from quantized_training import METHOD, RECIPE, QuantizedTraining, files_of, make_quantized_training
from safetensors.numpy import load_file, save_file
from tightrope.engines.build import build_engine
from tightrope.engines.load import load_engine
from tightrope.inputs.arrays import Arrays
from tightrope.int8.cache import read_cache
from tightrope.int8.learnt_ranges import with_learnt_ranges
from tightrope.jobs.child import supervised
from tightrope.onnx.file import load_onnx
from tightrope.onnx.session import run_onnx
from tightrope.onnx.weights import weighted_nodes
from tiny_model import EXECUTION, LIMITS, OPTIONS, TinyModel, evaluation_rows

WIDTH_OF_HEAD = 32
OUTLIER = 300
# of the file, by the scheme of the training
REPAIRS: dict[str, dict[str, Any]] = {
    "u8s8": {"outputs": True},
    "s8s8": {"outputs": True, "activations": "symmetric"},
}


@pytest.fixture(scope="module", params=REPAIRS)
def scheme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def trained(scheme: str, tiny: TinyModel, made_once: Callable[..., Path]) -> QuantizedTraining:
    recipe = {**RECIPE, "scheme": scheme, "outputs": True}
    make = partial(make_quantized_training, tiny, recipe=recipe, repair=REPAIRS[scheme])
    name = f"quantized-training-outputs-{scheme}"
    folder = made_once(name, lambda folder: supervised(partial(make, folder), limits=LIMITS))
    return files_of(tiny, folder)


@pytest.fixture(scope="module")
def batches(tiny: TinyModel) -> list[Arrays]:
    return [{name: array[None] for name, array in row.items()} for row in evaluation_rows(tiny)]


def learnt(trained: QuantizedTraining) -> dict[str, Any]:
    return json.loads(trained.checkpoint.read_text())["qat"]


def answers_in_training(trained: QuantizedTraining, batches: list[Arrays]) -> np.ndarray:
    """Logits of the fake-quantized PyTorch model, [examples, classes]."""
    import torch
    from tightrope.model.module import load_module, runner
    from tightrope.training.quantization_aware import (
        GRIDS_WITH_OUTPUTS,
        InputQuantizer,
        fake_quantized,
    )
    from tightrope.training.quantized_outputs import OUTPUT, places_of

    torch.set_num_threads(1)
    known = learnt(trained)
    model, grid = (
        load_module(trained.checkpoint.parent, torch.float32),
        GRIDS_WITH_OUTPUTS[known["scheme"]],
    )
    pairs = known["ranges"] | {name + OUTPUT: pair for name, pair in known["outputs"].items()}
    quantizers = {name: InputQuantizer(grid, *pair) for name, pair in pairs.items()}
    inputs = {name: torch.from_numpy(array) for name, array in batches[0].items()}
    with fake_quantized(model, quantizers, grid, places_of(model, inputs)):
        run = runner(lambda **inputs: model(**inputs).logits)
        return np.concatenate([run(batch) for batch in batches])


def test_onnx_runtime_computes_what_was_trained(
    trained: QuantizedTraining, batches: list[Arrays]
) -> None:
    found = np.concatenate(run_onnx(load_onnx(trained.u8s8), batches, threads=1))
    exact = np.concatenate(run_onnx(load_onnx(trained.simplified), batches, threads=1))
    expected = supervised(partial(answers_in_training, trained, batches), limits=LIMITS)
    assert np.abs(found - expected).max() < 0.02 * np.abs(exact - expected).max()


def test_each_tensor_that_the_file_quantizes_has_a_learnt_range(trained: QuantizedTraining) -> None:
    model, known = load_onnx(trained.simplified), learnt(trained)
    nodes = weighted_nodes(model)
    assert len(nodes) == 14 and {node.name for node in nodes} == set(known["outputs"])
    found = with_learnt_ranges({}, trained.simplified, trained.checkpoint)
    quantized = {
        node.input[0].removesuffix("_QuantizeLinear_Input")
        for node in load_onnx(trained.u8s8).graph.node
        if node.op_type == "QuantizeLinear"
    }
    # the outputs of all and the inputs, of which three layers each read one
    assert quantized == set(found) and len(quantized) == 25
    cache = read_cache(trained.cache, model=trained.simplified)
    assert cache["method"] == "qat" and found.items() <= cache["ranges"].items()
    # the scale of attention is in the weights of the queries
    scale = WIDTH_OF_HEAD**-0.5
    for node in nodes:
        factor = scale if node.name.endswith("query") else 1
        expected = [factor * end for end in known["outputs"][node.name]]
        assert found[node.output[0]] == pytest.approx(expected, rel=1e-4)


def test_outliers_of_outputs_cost_less_where_these_were_trained(
    tiny: TinyModel, batches: list[Arrays], tmp_path: Path
) -> None:
    exact = np.concatenate(run_onnx(load_onnx(tiny.simplified), batches, threads=1))
    source = with_outliers(tiny, tmp_path / "source")
    errors = {}
    for outputs in (False, True):
        chosen = {"outputs": True} if outputs else {}
        recipe = {**RECIPE, "epochs": 1, "learning_rate": 3e-4, "scheme": "s8s8", **chosen}
        folder = tmp_path / str(outputs)
        folder.mkdir()
        make = partial(make_quantized_training, source, folder, recipe, REPAIRS["s8s8"])
        supervised(make, limits=LIMITS)
        made = files_of(source, folder)
        found = np.concatenate(run_onnx(load_onnx(made.u8s8), batches, threads=1))
        assert ("outputs" in learnt(made)) == outputs
        errors[outputs] = np.abs(found - exact).mean()
    assert errors[True] < 0.6 * errors[False]


def with_outliers(tiny: TinyModel, folder: Path) -> TinyModel:
    """The same answers in float, of a model with a channel of values far beyond all others.

    What multiplies the values of attention is divided by the same factor, and keys by that of the
    queries.
    """
    shutil.copytree(tiny.checkpoint.parent, folder)
    weights = load_file(folder / "model.safetensors")
    for layer in range(2):
        attention = f"bert.encoder.layer.{layer}.attention"
        for part in ("weight", "bias"):
            weights[f"{attention}.self.query.{part}"][0] *= OUTLIER
            weights[f"{attention}.self.key.{part}"][0] /= OUTLIER
            weights[f"{attention}.self.value.{part}"][0] *= OUTLIER
        weights[f"{attention}.output.dense.weight"][:, 0] /= OUTLIER
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return tiny._replace(checkpoint=folder / tiny.checkpoint.name)


def test_openvino_runs_the_file(
    trained: QuantizedTraining, batches: list[Arrays], tmp_path: Path
) -> None:
    manifest = tmp_path / "engine" / "engine.json"
    options = {"reduce_range": False, **OPTIONS["openvino"]}
    name = f"cpu-openvino-int8-{METHOD}-usual"
    build_engine(name, trained.u8s8, manifest, execution=EXECUTION, options=options)
    engine = json.loads(manifest.read_text())
    assert engine["status"] == "ok", engine["reason"]
    found = supervised(partial(run_engine, manifest, batches), limits=LIMITS)
    expected = np.concatenate(run_onnx(load_onnx(trained.u8s8), batches, threads=1))
    assert (found.argmax(1) == expected.argmax(1)).mean() > 0.95


def run_engine(manifest: Path, batches: list[Arrays]) -> np.ndarray:
    run, _ = load_engine(manifest, threads=1)
    return np.concatenate([run(batch) for batch in batches])
