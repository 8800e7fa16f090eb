"""Layers, neurons and heads that are removed from real models, and what is loaded again."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from page_blocks import block
from pruned_models import logits, model_of
from tightrope.errors import ArtifactError, TightropeError
from tightrope.model.classifier import load_classifier
from tightrope.model.module import load_module
from tightrope.model.pruning import (
    FIELD,
    evenly,
    head_count,
    heads_in,
    parameters,
    prune,
    stage_widths,
)
from tightrope.signature import IMAGE
from transformers import (
    AutoConfig,
    AutoModelForImageClassification,
    AutoModelForSequenceClassification,
)

ENCODERS = ("bert", "distilbert", "roberta")


def layers(model: Any) -> Any:
    base = model.base_model
    return base.transformer.layer if hasattr(base, "transformer") else base.encoder.layer


@pytest.mark.parametrize("kind", ["bert", "distilbert"])
def test_a_pruned_model_is_an_ordinary_checkpoint(kind: str, tmp_path: Path) -> None:
    """Of layers and neurons that are named, or of so many."""
    model, whole = model_of(kind), model_of(kind)
    before = parameters(model)
    prune(model, layers=[0, 3])
    for ours, theirs in zip(layers(model), (layers(whole)[0], layers(whole)[3]), strict=True):
        for own, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(own, other)
    prune(model, intermediate=8)
    model.save_pretrained(tmp_path)
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    assert len(layers(again)) == 2
    assert parameters(again) == parameters(model) < before
    torch.testing.assert_close(logits(again), logits(model))


def test_neurons_that_do_nothing_go_first() -> None:
    model, idle = model_of("bert"), torch.arange(0, 32, 4)
    for layer in layers(model):
        with torch.no_grad():
            layer.output.dense.weight[:, idle] = 0
    expected = logits(model)
    prune(model, intermediate=24)
    assert model.config.intermediate_size == 24
    torch.testing.assert_close(logits(model), expected)
    # so many layers are kept at even distances with the last
    assert (evenly(3, 6), evenly(4, 6), evenly(1, 12)) == ([1, 3, 5], [1, 2, 3, 5], [11])


def test_blocks_of_a_convnext_are_an_ordinary_checkpoint_and_narrow_in_proportion(tmp_path) -> None:
    """Neurons are kept in the share of the first stage."""
    model, whole = model_of("convnext"), model_of("convnext")
    prune(model, blocks=[[0], [1], [0, 2], [0]])
    assert model.config.depths == [1, 1, 2, 1]
    model.save_pretrained(tmp_path)
    assert FIELD not in (tmp_path / "config.json").read_text()
    again = AutoModelForImageClassification.from_pretrained(tmp_path).eval()
    torch.testing.assert_close(logits(again), logits(model))
    neurons = [[*range(0, size, 4)] for size in (32, 64, 96, 96, 128)]
    prune(model, intermediate=8, neurons=neurons)
    assert stage_widths(model) == [8, 16, 24, 32]
    places = ((0, 0, 0), (1, 0, 1), (2, 0, 0), (2, 1, 2))
    for (stage, number, kept), own in zip(places, neurons[:4], strict=True):
        ours = model.base_model.encoder.stages[stage].layers[number]
        theirs = whole.base_model.encoder.stages[stage].layers[kept]
        torch.testing.assert_close(ours.pwconv1.weight, theirs.pwconv1.weight[own])
        torch.testing.assert_close(ours.pwconv1.bias, theirs.pwconv1.bias[own])
        torch.testing.assert_close(ours.pwconv2.weight, theirs.pwconv2.weight[:, own])


@pytest.mark.parametrize("kind", ENCODERS)
def test_heads_that_do_nothing_go_first(kind: str) -> None:
    model = model_of(kind)
    for number, layer in enumerate(layers(model)):
        attention = heads_in(layer)
        assert attention is not None and attention.number == 2
        idle = slice(0, 8) if number % 2 else slice(8, 16)
        with torch.no_grad():
            attention.out.weight[:, idle] = 0
    expected, before = logits(model), parameters(model)
    prune(model, heads=1)
    assert head_count(model) == 1
    # three products of 16 x 8 weights with a bias, and one without, in each of four layers
    assert before - parameters(model) == 4 * (3 * (16 + 1) * 8 + 16 * 8)
    torch.testing.assert_close(logits(model), expected)


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        ("bert", {"layers": 5}, r"layers = 5: BertForSequenceClassification has layers 0 to 3"),
        ("bert", {"layers": [2, 1]}, r"layers = \[2, 1\]: .*in ascending order"),
        ("bert", {"layers": [0, 4]}, r"layers = \[0, 4\]: .*layers 0 to 3"),
        ("bert", {"intermediate": 33}, "intermediate = 33: keep 1 to 32, which are there"),
        ("bert", {"heads": 3}, "heads = 3: keep 1 to 2, which are there"),
        ("convnext", {"heads": 1}, "heads = 1: ConvNextModel has no attention of a known form"),
    ],
)
def test_what_is_not_there_cannot_be_kept(kind: str, changes: Any, words: str) -> None:
    with pytest.raises(TightropeError, match=rf"^prune\.{words}"):
        prune(model_of(kind), **changes)


def test_a_model_of_another_form_is_named() -> None:
    config = AutoConfig.for_model("albert", hidden_size=16, num_attention_heads=2, vocab_size=50)
    albert = AutoModelForSequenceClassification.from_config(config)
    for model, name in ((albert, "AlbertModel"), (model_of("convnext"), "ConvNextModel")):
        with pytest.raises(TightropeError, match=rf"prune: {name} has no encoder\.layer"):
            prune(model, layers=1)
    # with weights for each neuron besides
    sizes = {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2}
    second = AutoModelForImageClassification.from_config(
        AutoConfig.for_model("convnextv2", **sizes)
    )
    prune(second, blocks=[[0], [0]])
    with pytest.raises(TightropeError, match=r"ConvNextV2Model has no known feed-forward layer"):
        prune(second, intermediate=8)


def narrow(folder: Path) -> Any:
    """A ConvNeXt with half of its neurons, saved in the folder."""
    model = model_of("convnext")
    prune(model, intermediate=16)
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize("kind", ENCODERS)
def test_an_encoder_with_fewer_heads_is_loaded_as_it_was_saved(kind: str, tmp_path: Path) -> None:
    model = model_of(kind)
    prune(model, layers=3, heads=1)
    model.save_pretrained(tmp_path / "first")
    config = json.loads((tmp_path / "first" / "config.json").read_text())
    assert config[FIELD] == {"heads": 1}
    for attention in ("eager", None):
        again: Any = load_module(tmp_path / "first", torch.float32, attention=attention)
        assert parameters(again) == parameters(model)
        torch.testing.assert_close(logits(again), logits(model))
    # and its child, of fewer layers
    prune(again, layers=1)
    again.save_pretrained(tmp_path / "second")
    child: Any = load_module(tmp_path / "second", torch.float32)
    assert head_count(child) == 1
    torch.testing.assert_close(logits(child), logits(again))


@pytest.mark.parametrize(
    ("kind", "changes", "heading"),
    [
        ("bert", {"heads": 1}, "A BERT with fewer heads"),
        ("convnext", {"intermediate": 16}, "A narrow ConvNeXt"),
    ],
)
def test_lines_of_the_page_load_it(kind: str, changes: Any, heading: str, tmp_path: Path) -> None:
    model, names = model_of(kind), {"folder": tmp_path}
    prune(model, **changes)
    model.save_pretrained(tmp_path)
    with pytest.raises(RuntimeError, match="mismatch"):
        type(model).from_pretrained(tmp_path)
    exec(block("pruning.md", "python", heading), names)
    loaded: Any = names["model"]
    torch.testing.assert_close(logits(loaded), logits(model))


def test_it_gets_a_new_head_and_keeps_its_neurons(tmp_path: Path) -> None:
    model = narrow(tmp_path)
    options: Any = {"source": "path:narrow", "task": IMAGE, "new_head": True, "seed": 0}
    child = load_classifier(tmp_path, labels=["a", "b", "c"], **options)
    assert child.config.num_labels == 3
    ours, theirs = (one.base_model.encoder.state_dict() for one in (child, model))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_noted_sizes_that_the_model_cannot_have_are_named(tmp_path: Path) -> None:
    narrow(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    whole = [16, 32, 48, 64]
    inner = [whole[:3], [*whole[:3], 129], [*whole[:3], 0]]
    for noted in (*({"inner": sizes} for sizes in inner), {"outer": whole}, [16]):
        (tmp_path / "config.json").write_text(json.dumps({**config, FIELD: noted}))
        with pytest.raises(ArtifactError, match=rf"{FIELD} = .*ConvNextForImageClassification has"):
            load_module(tmp_path, torch.float32)
