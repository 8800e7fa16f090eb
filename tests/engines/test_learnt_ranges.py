"""Ranges that a training learnt are those of the engines, whose answers are those of training."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpoints import make_checkpoint
from tightrope.engines.build import build_engine
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays
from tightrope.int8.ranges import LearntRanges, with_learnt_ranges
from tightrope.jobs.child import supervised
from tightrope.onnx.file import load_onnx
from tightrope.onnx.session import run_onnx
from tiny_model import (
    EXECUTION,
    LIMITS,
    LONGEST,
    OPTIONS,
    SAMPLES,
    TinyModel,
    answers_of,
    evaluation_rows,
    make_onnx_files,
    model_files,
)

RECIPE = {
    **{"epochs": 0.2, "batch": 16, "learning_rate": 1e-3, "sequence": LONGEST, "amp": "off"},
    "scheme": "u8s8",
}
METHOD = f"qat-{SAMPLES}"


def files_of(tiny: TinyModel, folder: Path) -> TinyModel:
    """Where the files of a training lie; the quantized ONNX has the learnt ranges."""
    return model_files(folder)._replace(data=tiny.data, minmax=folder / f"{METHOD}.json")


def make_files(
    tiny: TinyModel, folder: Path, recipe: dict[str, Any], repair: dict[str, Any]
) -> None:
    """Run in a child: train the tiny model on, and make the files."""
    from tightrope.int8.calibrate import calibrate
    from tightrope.int8.quantize import quantize_onnx

    made = files_of(tiny, folder)
    make_checkpoint(folder, f"path:{tiny.checkpoint.parent}", tiny.split("train"), qat=recipe)
    make_onnx_files(made, methods=(), schemes=())
    facts: dict[str, Any] = {"samples": SAMPLES, "max_sequence": LONGEST, "threads": 1}
    paths = (made.simplified, tiny.split("calibration"), made.checkpoint, made.minmax)
    calibrate(*paths, method="qat", percentile=None, libraries={}, **facts)
    quantize_onnx(made.simplified, made.minmax, made.u8s8, scheme="u8s8", repair=repair)


INPUTS, OUTPUTS = "of inputs", "of outputs too"
# what is trained, and the repair of the file; of outputs in the scheme of TensorRT
TRAININGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    INPUTS: (RECIPE, {}),
    OUTPUTS: (
        {**RECIPE, "scheme": "s8s8", "outputs": True},
        {"outputs": True, "activations": "symmetric"},
    ),
}
Train = Callable[[str], TinyModel]


@pytest.fixture(scope="module")
def trained(tiny: TinyModel, made_once: Callable[..., Path]) -> Train:
    """From a name of TRAININGS to the files, each made once."""

    def train(name: str) -> TinyModel:
        recipe, repair = TRAININGS[name]
        folder = made_once(
            f"quantized-training-{name}",
            lambda folder: supervised(make_files, tiny, folder, recipe, repair, limits=LIMITS),
        )
        return files_of(tiny, folder)

    return train


@pytest.fixture(scope="module")
def batches(tiny: TinyModel) -> list[Arrays]:
    return [{name: array[None] for name, array in row.items()} for row in evaluation_rows(tiny)]


def learnt(trained: TinyModel) -> dict[str, Any]:
    return json.loads(trained.checkpoint.read_text())["qat"]


def answers_in_training(trained: TinyModel, batches: list[Arrays]) -> np.ndarray:
    """Logits of the fake-quantized PyTorch model, [examples, classes]."""
    import torch
    from tightrope.model.module import load_module, runner
    from tightrope.training.quantization_aware import (
        GRIDS,
        GRIDS_WITH_OUTPUTS,
        OUTPUT,
        InputQuantizer,
        fake_quantized,
        places_of,
    )

    torch.set_num_threads(1)
    known, model = learnt(trained), load_module(trained.checkpoint.parent, torch.float32)
    outputs = known.get("outputs", {})
    grid = (GRIDS_WITH_OUTPUTS if outputs else GRIDS)[known["scheme"]]
    pairs = known["ranges"] | {name + OUTPUT: pair for name, pair in outputs.items()}
    quantizers = {name: InputQuantizer(grid, *pair) for name, pair in pairs.items()}
    inputs = {name: torch.from_numpy(array) for name, array in batches[0].items()}
    places = [places_of(model, inputs)] if outputs else []
    with fake_quantized(model, quantizers, grid, *places):
        run = runner(lambda **inputs: model(**inputs).logits)
        return np.concatenate([run(batch) for batch in batches])


def answers_of_files(trained: TinyModel, batches: list[Arrays]) -> list[np.ndarray]:
    """Run in a child: logits of the quantized file, and of the one before."""
    files = (trained.u8s8, trained.simplified)
    return [np.concatenate(run_onnx(load_onnx(one), batches, threads=1)) for one in files]


@pytest.mark.parametrize("name", TRAININGS)
def test_onnx_runtime_computes_what_was_trained(name, trained, batches) -> None:
    files = trained(name)
    found, exact = supervised(partial(answers_of_files, files, batches), limits=LIMITS)
    expected = supervised(partial(answers_in_training, files, batches), limits=LIMITS)
    assert np.abs(found - expected).max() < 0.02 * np.abs(exact - expected).max()


def test_a_checkpoint_that_learnt_no_ranges_is_refused(trained: Train, tiny: TinyModel) -> None:
    with pytest.raises(TightropeError, match="no ranges were learnt; give the model a qat recipe"):
        LearntRanges(tiny.checkpoint)
    with pytest.raises(TightropeError, match="no operator has the weights of"):
        with_learnt_ranges({}, tiny.simplified, trained(INPUTS).checkpoint)


@pytest.mark.parametrize(("name", "repair"), [(INPUTS, ""), (OUTPUTS, "-usual")])
def test_openvino_runs_the_quantized_file(name, repair, trained, batches, tmp_path) -> None:
    files, manifest = trained(name), tmp_path / "engine" / "engine.json"
    options = {"reduce_range": False, **OPTIONS["openvino"]}
    variant = f"cpu-openvino-int8-{METHOD}{repair}"
    build_engine(variant, files.u8s8, manifest, execution=EXECUTION, options=options)
    engine = json.loads(manifest.read_text())
    assert engine["status"] == "ok", engine["reason"]
    products = engine["executed"]["FullyConnected"]
    # where there are no VNNI instructions the pooler and the classifier are such products too
    assert products["int8"] >= 12 and (name == OUTPUTS or list(products) == ["int8"])
    found = np.concatenate(answers_of(manifest, batches))
    expected, _ = supervised(partial(answers_of_files, files, batches), limits=LIMITS)
    assert (found.argmax(1) == expected.argmax(1)).mean() > 0.95


def answers_of_inductor(trained: TinyModel, batches: list[Arrays]) -> np.ndarray:
    """Logits of what AOTInductor compiles, run as it is."""
    import torch
    from tightrope.engines.inductor import exported, quantized
    from tightrope.model.module import example_inputs, logits_module, runner
    from tightrope.signature import of_checkpoint

    torch.set_num_threads(1)
    manifest = json.loads(trained.checkpoint.read_text())
    module = logits_module(trained.checkpoint, torch.float32)
    with torch.no_grad():
        signature = of_checkpoint(manifest)
        example = example_inputs(signature, 2)
        graph = exported(module, signature, manifest["max_sequence"], example)
        made = quantized(graph.module(), trained.samples(trained.minmax), reduced=False)
    run = runner(made)
    # the exporter would fix a size of 1
    return np.concatenate(
        [run({k: np.repeat(v, 2, 0) for k, v in one.items()})[:1] for one in batches]
    )


def test_inductor_quantizes_with_the_learnt_ranges(trained: Train, batches: list[Arrays]) -> None:
    files = trained(INPUTS)
    found = supervised(partial(answers_of_inductor, files, batches[:20]), limits=LIMITS)
    expected, exact = supervised(partial(answers_of_files, files, batches[:20]), limits=LIMITS)
    assert np.abs(found - expected).max() < 0.1 * np.abs(exact - expected).max()
