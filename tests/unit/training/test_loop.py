"""A training of tiny images: what is random in it, what is resumed, what its keys do."""

import copy
import io
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from breaking import killed_at
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays
from tightrope.training.examples import Subject, flip_crop, image_subject
from tightrope.training.loop import TrainingState, fine_tune
from tightrope.training.recipe import resolve_amp, whole_recipe
from tightrope.training.step import prepare_device, rounds_to_tf32
from transformers import ConvNextConfig, ConvNextForImageClassification

RECIPE = {"epochs": 3, "batch": 16, "learning_rate": 5e-3, "amp": "off", "device": "cpu"}
SIDE = 16


def subject(rows: int = 100) -> Subject:
    """Images with a light spot in one of four corners, for a network that drops paths."""
    torch.manual_seed(0)
    shape = {"num_stages": 2, "hidden_sizes": [8, 16], "depths": [1, 1], "patch_size": 2}
    config = ConvNextConfig(**shape, image_size=SIDE, num_labels=4, drop_path_rate=0.1)
    draw = np.random.default_rng(0)
    labels = np.arange(rows) % 4
    images = draw.normal(size=(rows, 3, SIDE, SIDE)).astype(np.float32)
    for image, label in zip(images, labels, strict=True):
        top, left = 8 * (label // 2), 8 * (label % 2)
        image[:, top : top + 8, left : left + 8] += 2.0
    model = ConvNextForImageClassification(config)
    return image_subject(model, [{"pixel_values": image} for image in images], labels)


def weights(one: Subject) -> dict[str, np.ndarray]:
    return {name: value.numpy() for name, value in one.model.state_dict().items()}


def train(one: Subject | None = None, changes: dict | None = None, **options: Any) -> Any:
    prepare_device("cpu", 1)
    one = one or subject()
    options = {"device": "cpu", "terminal": io.StringIO(), **options}
    torch.manual_seed(1)
    course, facts = fine_tune(one, whole_recipe({**RECIPE, **(changes or {})}, 0), **options)
    return weights(one), course, facts


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in one)


@pytest.fixture(scope="module")
def plain() -> Any:
    return train()


def test_each_epoch_is_told_with_its_loss_its_samples_and_its_time(plain: Any) -> None:
    _, course, facts = plain
    assert facts == {
        **{"steps": 21, "amp": "off", "tf32": False, "device": "cpu"},
        **{"samples": 100, "held_out_samples": 0},
    }
    assert [(epoch["samples"], epoch["steps"]) for epoch in course.epochs] == [(100, 7)] * 3
    assert all(epoch["seconds"] > 0 for epoch in course.epochs)
    assert course.epochs[-1]["loss"] < course.epochs[0]["loss"]
    assert course.epochs[0]["loss"] == pytest.approx(np.mean(course.losses[:7]))
    assert course.epochs[0]["accuracy"] is None
    # another seed draws other batches
    assert not same(train(changes={"seed": 5, "epochs": 3})[0], plain[0])


def test_each_image_of_each_step_is_moved_by_chance_of_its_own() -> None:
    one, drawn = subject(), []

    def draw(row: Arrays, generator: np.random.Generator) -> Arrays:
        drawn.append(generator.random())
        return row

    train(image_subject(one.model, one.rows, one.labels, augment=draw), {"epochs": 1})
    assert len(drawn) == len(set(drawn)) == 100


FROZEN = ["convnext.embeddings", "convnext.encoder.stages.0"]


@pytest.mark.parametrize(
    "changes", [{}, {"amp": "fp16", "channels_last": True, "frozen": FROZEN}], ids=str
)
def test_what_was_interrupted_goes_on_to_the_same_weights(changes: dict, tmp_path: Path) -> None:
    """Dropped paths, moved images, moments, schedule and scaled gradients go on as they were."""

    def begun(terminal: io.StringIO, folder: Path, every_s: float) -> Any:
        one = subject(rows=64)
        one = image_subject(one.model, one.rows, one.labels, augment=flip_crop)
        state, recipe = TrainingState(folder, "key", every_s=every_s), {"epochs": 2, **changes}
        return train(one, {**recipe, "validate": True}, terminal=terminal, state=state)

    whole = begun(io.StringIO(), tmp_path / "whole", 1e9)
    for every_s, name in ((0.0, "each step"), (1e9, "each epoch")):
        with killed_at(7):
            begun(io.StringIO(), tmp_path / name, every_s)
        terminal = io.StringIO()
        weights, course, _ = begun(terminal, tmp_path / name, every_s)
        assert "fine-tuning: goes on after step" in terminal.getvalue()
        assert same(weights, whole[0])
        assert course.losses == whole[1].losses
        accuracies = [[epoch["accuracy"] for epoch in one.epochs] for one in (course, whole[1])]
        assert accuracies[0] == accuracies[1]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state of a training that was killed, with the key `one`."""
    folder = tmp_path_factory.mktemp("killed")
    with killed_at(15):
        train(state=TrainingState(folder, "one"))
    return folder


@pytest.mark.parametrize("spoil", ["another key", "torn", "missing"])
def test_a_torn_state_is_as_none(spoil: str, killed: Path, plain: Any, tmp_path: Path) -> None:
    folder, terminal = shutil.copytree(killed, tmp_path / "state"), io.StringIO()
    (file,) = folder.glob("*.safetensors")
    if spoil == "torn":
        file.write_bytes(file.read_bytes()[:-4] + b"torn")
    elif spoil == "missing":
        file.unlink()
    state = TrainingState(folder, "other" if spoil == "another key" else "one")
    weights, *_ = train(terminal=terminal, state=state)
    assert "goes on" not in terminal.getvalue()
    assert same(weights, plain[0])


def test_in_parts_a_batch_gives_the_gradients_of_the_whole() -> None:
    one = subject()
    for module in one.model.modules():
        if hasattr(module, "drop_prob"):
            module.drop_prob = 0.0
    other = copy.deepcopy(one)
    whole, parts = train(one, {"epochs": 1}), train(other, {"epochs": 1}, micro_batches=3)
    assert parts[1].micro_batches == 3
    np.testing.assert_allclose(parts[1].losses, whole[1].losses, rtol=1e-4)
    for name, value in parts[0].items():
        np.testing.assert_allclose(value, whole[0][name], atol=2e-3)


def test_what_was_begun_with_larger_parts_begins_anew(killed: Path, tmp_path: Path) -> None:
    expected, *_ = train(micro_batches=2)
    folder = shutil.copytree(killed, tmp_path / "state")
    with killed_at(2):
        train(state=TrainingState(folder, "one"), micro_batches=2)
    # a run after a killed one asks for whole batches again
    weights, course, _ = train(state=TrainingState(folder, "one"))
    assert course.micro_batches == 2
    assert same(weights, expected)


def test_bf16_and_fp16_train_other_weights_and_are_told(plain: Any) -> None:
    for amp in ("bf16", "fp16"):
        one = subject()
        weights, course, facts = train(one, {"amp": amp, "channels_last": amp == "fp16"})
        # the layout of the weights is as it was
        assert all(value.is_contiguous() for value in one.model.parameters())
        assert facts["amp"] == amp
        assert weights["classifier.weight"].dtype == np.float32
        assert not same(weights, plain[0])
        assert course.epochs[-1]["loss"] < course.epochs[0]["loss"]


def test_with_validate_a_tenth_is_judged_and_not_trained_on() -> None:
    _, course, facts = train(changes={"validate": True, "epochs": 10})
    assert (facts["samples"], facts["held_out_samples"]) == (90, 10)
    assert course.epochs[-1]["accuracy"] > 0.8
    with pytest.raises(TightropeError, match="one example alone cannot be split"):
        train(subject(rows=1), {"validate": True})


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_an_error_and_would_not_round_float32_to_tf32() -> None:
    """PyTorch's own default rounds convolutions on a GPU, so that "off" would be TF32 there."""
    assert resolve_amp("off", "cpu") == "off"
    assert resolve_amp("auto", "cpu") in ("bf16", "off")
    with pytest.raises(TightropeError, match=r"train\.device = cuda: PyTorch sees no GPU"):
        prepare_device("cuda", 1)
    torch.backends.cudnn.allow_tf32 = True
    torch.set_float32_matmul_precision("high")
    assert rounds_to_tf32()
    prepare_device("cpu", 1)
    assert not rounds_to_tf32()
