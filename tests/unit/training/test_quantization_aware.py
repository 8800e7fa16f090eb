"""A training with quantized values: what it quantizes, what it leaves, what is resumed."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from breaking import Breaking, Killed
from tightrope.errors import TightropeError
from tightrope.training.examples import Subject, image_subject
from tightrope.training.quantization_aware import (
    GRIDS,
    calibrated,
    fake_quantized,
    fine_tune_quantized,
)
from tightrope.training.recipe import whole_recipe
from tightrope.training.state import TrainingState
from tightrope.training.step import prepare_device
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    ResNetConfig,
    ResNetForImageClassification,
)

RECIPE = {
    **{"epochs": 2, "batch": 8, "learning_rate": 1e-3, "amp": "off", "device": "cpu"},
    "scheme": "u8s8",
}
BRANCH = "bert.encoder.layer.0.attention"


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
    return Subject(
        model=BertForSequenceClassification(config),
        rows=rows,
        labels=labels,
        unit="texts",
        lengths=[len(row["input_ids"]) for row in rows],
        prepare=lambda model, _: model.train(),
    )


def images() -> Subject:
    torch.manual_seed(0)
    config = ResNetConfig(
        **{"num_channels": 3, "embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 1]},
        **{"layer_type": "basic", "num_labels": 2},
    )
    rows = [
        {"pixel_values": one}
        for one in np.float32(np.random.default_rng(0).normal(size=(24, 3, 16, 16)))
    ]
    return image_subject(ResNetForImageClassification(config), rows, np.arange(24) % 2)


def train(subject: Subject, **options: Any) -> Any:
    changes = options.pop("changes", {})
    prepare_device("cpu", 1)
    options = {"device": "cpu", "terminal": io.StringIO(), **options}
    return fine_tune_quantized(subject, whole_recipe({**RECIPE, **changes}, 0), **options)


def weights(subject: Subject) -> dict[str, np.ndarray]:
    return {name: value.numpy().copy() for name, value in subject.model.state_dict().items()}


@pytest.mark.parametrize("made", [texts, images])
def test_a_plain_model_is_left_whose_weights_have_learnt(made: Any) -> None:
    subject = made()
    before, parameters = weights(subject), {name for name, _ in subject.model.named_parameters()}
    course, facts = train(subject)
    after = weights(subject)
    assert set(after) == set(before)
    assert {name for name, _ in subject.model.named_parameters()} == parameters
    assert all(not module._forward_pre_hooks for module in subject.model.modules())
    kinds = {type(module).__name__ for module in subject.model.modules()}
    assert not any(name.startswith("Parametrized") for name in kinds)
    changed = {name for name in before if not np.array_equal(after[name], before[name])}
    assert changed and not any("running_mean" in name for name in changed)
    assert all(len(np.unique(after[name])) > 256 for name in after if after[name].ndim == 4)
    assert course.losses[-1] < course.losses[0] and len(facts["ranges"]) > 3


@pytest.mark.parametrize("made", [texts, images])
def test_outputs_learn_ranges_and_leave_a_plain_model(made: Any) -> None:
    subject = made()
    before, linear = weights(subject), (torch.nn.Linear, torch.nn.Conv2d)
    course, facts = train(subject, changes={"scheme": "s8s8", "outputs": True})
    assert set(weights(subject)) == set(before) and course.losses[-1] < course.losses[0]
    assert "forward" not in vars(subject.model)
    modules = dict(subject.model.named_modules())
    assert not any(one._forward_hooks or one._forward_pre_hooks for one in modules.values())
    # of each, also of those that TensorRT keeps in float
    expected = {name for name, one in modules.items() if isinstance(one, linear)}
    assert set(facts["outputs"]) == set(facts["ranges"]) == expected
    assert all(low == -high < 0 for low, high in facts["outputs"].values())
    assert "outputs" not in train(made(), changes={"scheme": "s8s8"})[1]


def test_modules_that_read_one_tensor_have_one_range_which_is_learnt() -> None:
    subject = texts()
    first = {
        name: one.range().tolist()
        for name, one in calibrated(subject, GRIDS["u8s8"], "cpu").items()
    }
    _, facts = train(subject)
    query, key, value = (
        facts["ranges"][f"{BRANCH}.self.{one}"] for one in ("query", "key", "value")
    )
    assert query == key == value != facts["ranges"][f"{BRANCH}.output.dense"]
    assert all(facts["ranges"][name] != pair for name, pair in first.items())
    linear = [
        name for name, one in subject.model.named_modules() if isinstance(one, torch.nn.Linear)
    ]
    assert set(facts["ranges"]) == set(linear)


def test_what_tensorrt_keeps_in_float_is_not_rounded() -> None:
    ranges = calibrated(texts(), GRIDS["s8s8"], "cpu")
    # of each text one row reaches these
    assert not {"bert.pooler.dense", "classifier"} & set(ranges)
    assert len(ranges) == 2 * 6
    found = calibrated(images(), GRIDS["s8s8"], "cpu")
    assert "resnet.embedder.embedder.convolution" not in found
    assert "resnet.embedder.embedder.convolution" in calibrated(images(), GRIDS["u8s8"], "cpu")


def test_rounding_changes_the_logits_a_little() -> None:
    subject = texts()
    model, grid = subject.model.eval(), GRIDS["u8s8"]
    inputs = {name: torch.from_numpy(array) for name, array in subject.batch([0])[0].items()}
    with torch.inference_mode():
        exact = model(**inputs).logits
        with fake_quantized(model, calibrated(subject, grid, "cpu"), grid):
            found = model(**inputs).logits
        torch.testing.assert_close(model(**inputs).logits, exact)
    assert 0 < (found - exact).abs().max() < 0.1 * exact.abs().max()


@pytest.mark.parametrize("changes", [{}, {"scheme": "s8s8", "outputs": True}], ids=str)
def test_what_was_interrupted_goes_on_to_the_same_weights_and_ranges(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    whole = texts()
    _, facts = train(whole, changes=changes)
    with pytest.raises(Killed):
        state = TrainingState(tmp_path, "key", every_s=0.0)
        train(texts(), changes=changes, terminal=Breaking(2), state=state)
    again, terminal = texts(), io.StringIO()
    state = TrainingState(tmp_path, "key")
    _, found = train(again, changes=changes, terminal=terminal, state=state)
    assert "fine-tuning: goes on after step" in terminal.getvalue()
    assert (found["ranges"], found.get("outputs")) == (facts["ranges"], facts.get("outputs"))
    assert all(np.array_equal(one, weights(whole)[name]) for name, one in weights(again).items())


def test_a_model_without_products_is_refused() -> None:
    class Sum(torch.nn.Module):
        def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
            return pixel_values.sum()

    subject = image_subject(Sum(), [{"pixel_values": np.zeros((3, 4, 4), np.float32)}], np.zeros(1))
    with pytest.raises(TightropeError, match="qat: Sum has no linear layer or convolution"):
        calibrated(subject, GRIDS["u8s8"], "cpu")
