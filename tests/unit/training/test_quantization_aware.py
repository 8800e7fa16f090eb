"""A training with quantized values: what it rounds, how and where, and what it leaves."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from breaking import killed_at
from tightrope.errors import TightropeError
from tightrope.int8.schemes import SCHEMES
from tightrope.training.examples import Subject, image_subject
from tightrope.training.loop import TrainingState
from tightrope.training.quantization_aware import (
    GRIDS,
    InputQuantizer,
    WeightQuantizer,
    calibrated,
    fine_tune_quantized,
)
from tightrope.training.recipe import whole_recipe
from tightrope.training.step import prepare_device
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    ResNetConfig,
    ResNetForImageClassification,
)

RECIPE = {"epochs": 2, "batch": 8, "learning_rate": 1e-3, "amp": "off", "device": "cpu"}
LOW, HIGH = -0.7, 2.9


def texts() -> Subject:
    """Texts of several lengths, of a model with a layer of 16 channels, its head with 2 outputs."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = BertConfig(**sizes, intermediate_size=32, vocab_size=50, max_position_embeddings=16)
    draw = np.random.default_rng(0)
    rows = []
    for number in range(40):
        ids = draw.integers(1, 50, size=4 + number % 8)
        rows.append({"input_ids": ids, "attention_mask": np.ones_like(ids)})
    labels = np.array([int(row["input_ids"][0] > 25) for row in rows])
    facts = {"unit": "texts", "lengths": [len(row["input_ids"]) for row in rows]}
    model = BertForSequenceClassification(config)
    return Subject(model, rows, labels, **facts, prepare=lambda model, _: model.train())


def images() -> Subject:
    torch.manual_seed(0)
    config = ResNetConfig(
        **{"num_channels": 3, "embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 1]},
        **{"layer_type": "basic", "num_labels": 2},
    )
    pixels = np.random.default_rng(0).normal(size=(24, 3, 16, 16)).astype(np.float32)
    rows = [{"pixel_values": one} for one in pixels]
    return image_subject(ResNetForImageClassification(config), rows, np.arange(24) % 2)


def train(subject: Subject, **options: Any) -> Any:
    changes = options.pop("changes", {})
    prepare_device("cpu", 1)
    options = {"device": "cpu", "terminal": io.StringIO(), **options}
    return fine_tune_quantized(
        subject, whole_recipe({**RECIPE, "scheme": "u8s8", **changes}, 0), **options
    )


def weights(subject: Subject) -> dict[str, np.ndarray]:
    return {name: value.numpy().copy() for name, value in subject.model.state_dict().items()}


WITH_OUTPUTS = {"scheme": "s8s8", "outputs": True}


@pytest.mark.parametrize("changes", [{}, WITH_OUTPUTS], ids=["inputs", "outputs too"])
@pytest.mark.parametrize("made", [texts, images])
def test_weights_and_ranges_of_a_plain_model_learn(made: Any, changes: dict[str, Any]) -> None:
    subject = made()
    before, model = weights(subject), subject.model
    parameters = {name for name, _ in model.named_parameters()}
    course, facts = train(subject, changes=changes)
    after, modules = weights(subject), dict(model.named_modules())
    assert set(after) == set(before)
    assert {name for name, _ in model.named_parameters()} == parameters
    assert "forward" not in vars(model)
    assert not any(one._forward_hooks or one._forward_pre_hooks for one in modules.values())
    assert not any(type(one).__name__.startswith("Parametrized") for one in modules.values())
    changed = {name for name in before if not np.array_equal(after[name], before[name])}
    assert changed and not any("running_mean" in name for name in changed)
    assert all(len(np.unique(after[name])) > 256 for name in after if after[name].ndim == 4)
    assert course.losses[-1] < course.losses[0] and len(facts["ranges"]) > 3
    if changes:
        # of each, also of those that TensorRT keeps in float
        kinds = torch.nn.Linear | torch.nn.Conv2d
        expected = {name for name, one in modules.items() if isinstance(one, kinds)}
        assert set(facts["outputs"]) == set(facts["ranges"]) == expected
        assert all(low == -high < 0 for low, high in facts["outputs"].values())
    else:
        assert "outputs" not in facts
        first = calibrated(made(), GRIDS["u8s8"], "cpu")
        assert all(facts["ranges"][name] != one.range().tolist() for name, one in first.items())


def test_what_tensorrt_keeps_in_float_is_not_rounded() -> None:
    ranges = calibrated(texts(), GRIDS["s8s8"], "cpu")
    # of each text one row reaches these
    assert not {"bert.pooler.dense", "classifier"} & set(ranges)
    assert len(ranges) == 2 * 6
    found = calibrated(images(), GRIDS["s8s8"], "cpu")
    assert "resnet.embedder.embedder.convolution" not in found
    assert "resnet.embedder.embedder.convolution" in calibrated(images(), GRIDS["u8s8"], "cpu")


def test_what_was_interrupted_goes_on_to_the_same_weights_and_ranges(tmp_path: Path) -> None:
    whole, again, terminal = texts(), texts(), io.StringIO()
    changes = {**WITH_OUTPUTS, "epochs": 1}
    _, facts = train(whole, changes=changes)
    with killed_at(3):
        train(texts(), changes=changes, state=TrainingState(tmp_path, "key", every_s=0.0))
    state = TrainingState(tmp_path, "key")
    _, found = train(again, changes=changes, terminal=terminal, state=state)
    assert "fine-tuning: goes on after step" in terminal.getvalue()
    assert (found["ranges"], found["outputs"]) == (facts["ranges"], facts["outputs"])
    assert all(np.array_equal(one, weights(whole)[name]) for name, one in weights(again).items())


def test_a_model_without_products_is_refused() -> None:
    class Sum(torch.nn.Module):
        def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
            return pixel_values.sum()

    subject = image_subject(Sum(), [{"pixel_values": np.zeros((3, 4, 4), np.float32)}], np.zeros(1))
    with pytest.raises(TightropeError, match="qat: Sum has no linear layer or convolution"):
        calibrated(subject, GRIDS["u8s8"], "cpu")


def values(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)) * 2


@pytest.mark.parametrize(("scheme", "least", "most"), [("s8s8", 250, 255), ("e4m3", 100, 253)])
def test_symmetric_activations_lie_on_their_grid(scheme: str, least: int, most: int) -> None:
    exact = torch.linspace(-4, 4, 100_001)
    found = InputQuantizer(GRIDS[scheme], LOW, HIGH)(exact).detach()
    assert least <= len(found.unique()) <= most
    assert found.max() == -found.min() == pytest.approx(HIGH, rel=1e-3)
    inner = exact.abs() < HIGH
    assert (found - exact)[inner].abs().max() < HIGH / (12 if scheme == "e4m3" else 250)


@pytest.mark.parametrize(("scheme", "steps"), [("u8s7", 64), ("s8s8", 127)])
def test_weights_have_a_scale_per_output_channel(scheme: str, steps: int) -> None:
    exact = values(3, 40) * torch.tensor([[0.01], [1.0], [0.0]])
    found = WeightQuantizer(GRIDS[scheme])(exact)
    integers = found[:2] / (exact[:2].abs().amax(1, keepdim=True) / steps)
    torch.testing.assert_close(integers, integers.round(), atol=0.1, rtol=0)
    assert integers.abs().amax(1).tolist() == pytest.approx([steps, steps], rel=1e-3)
    assert not found[2].any()
    # the gradient goes straight through
    weight = torch.nn.Parameter(exact)
    (WeightQuantizer(GRIDS[scheme])(weight) * 3).sum().backward()
    assert weight.grad is not None and (weight.grad == 3).all()


def test_the_gradient_of_a_range_is_that_of_learned_step_sizes() -> None:
    """Esser et al. 2020, equation 3, with the size of section 2.2; of the scale's logarithm."""
    exact, quantizer = values(200), InputQuantizer(GRIDS["s8s8"], -1.0, 1.0)
    quantizer(exact).sum().backward()
    step = float(np.float16(1 / 127))
    steps = exact / step
    inner = torch.where(steps.abs() <= 127, steps.round() - steps, 127 * steps.sign())
    expected = inner.sum() * (1 / 127) / np.sqrt(len(exact) * 127)
    assert quantizer.logarithms.grad is not None
    assert quantizer.logarithms.grad.item() == pytest.approx(expected.item(), rel=1e-3)


def test_what_a_range_cuts_off_has_no_gradient_in_any_scheme_of_the_files() -> None:
    exact = torch.tensor([-3.0, -0.5, 0.0, 1.0, 9.0], requires_grad=True)
    InputQuantizer(GRIDS["u8s8"], LOW, HIGH)(exact).sum().backward()
    assert exact.grad is not None and exact.grad.tolist() == [0, 1, 1, 1, 0]
    # an activation that was always zero stays zero
    assert set(GRIDS) == set(SCHEMES)
    for scheme in GRIDS:
        assert GRIDS[scheme].symmetric is (SCHEMES[scheme].symmetric is not None)
        found = InputQuantizer(GRIDS[scheme], 0.0, 0.0)(torch.zeros(5))
        assert found.tolist() == [0] * 5
