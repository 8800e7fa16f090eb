"""Checkpoints with sizes that config.json has no field for: saved, loaded and pruned again."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from page_blocks import block
from pruned_models import logits, model_of
from tightrope.errors import ArtifactError
from tightrope.model.blocks import heads_of, stage_widths
from tightrope.model.classifier import load_classifier
from tightrope.model.module import load_module
from tightrope.model.pruning import FIELD, parameters, prune
from tightrope.signature import IMAGE
from transformers import ConvNextForImageClassification


def narrow(folder: Path) -> Any:
    """A ConvNeXt with half of its neurons, saved in the folder."""
    model = model_of("convnext")
    prune(model, intermediate=16)
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize("kind", ["bert", "distilbert", "roberta"])
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
    assert heads_of(child) == 1
    torch.testing.assert_close(logits(child), logits(again))


@pytest.mark.parametrize(
    ("kind", "changes", "heading"),
    [
        ("bert", {"heads": 1}, "A BERT with fewer heads"),
        ("convnext", {"intermediate": 16}, "A narrow ConvNeXt"),
    ],
)
def test_the_lines_of_the_page_load_what_transformers_alone_refuses(
    kind: str, changes: Any, heading: str, tmp_path: Path
) -> None:
    model, names = model_of(kind), {"folder": tmp_path}
    prune(model, **changes)
    model.save_pretrained(tmp_path)
    with pytest.raises(RuntimeError, match="mismatch"):
        type(model).from_pretrained(tmp_path)
    exec(block("pruning.md", "python", heading), names)
    loaded: Any = names["model"]
    torch.testing.assert_close(logits(loaded), logits(model))


def test_it_is_trained_and_pruned_again_and_its_child_too(tmp_path: Path) -> None:
    model = narrow(tmp_path / "first")
    config = json.loads((tmp_path / "first/config.json").read_text())
    assert config[FIELD] == {"inner": [16, 32, 48, 64]}
    child: Any = load_module(tmp_path / "first", torch.float32)
    assert type(child) is ConvNextForImageClassification
    torch.testing.assert_close(logits(child), logits(model))
    before = child.base_model.encoder.stages[0].layers[0].pwconv1.weight.detach().clone()
    optimizer = torch.optim.SGD(child.parameters(), lr=0.1)
    child.train()(
        pixel_values=torch.randn(2, 3, 32, 32), labels=torch.tensor([0, 1])
    ).loss.backward()
    optimizer.step()
    assert not torch.equal(child.base_model.encoder.stages[0].layers[0].pwconv1.weight, before)
    prune(child.eval(), blocks=[[0], [1], [0, 2], [0]], intermediate=8)
    child.save_pretrained(tmp_path / "second")
    again: Any = load_module(tmp_path / "second", torch.float32)
    assert stage_widths(again) == [8, 16, 24, 32]
    assert again.config.depths == [1, 1, 2, 1]
    torch.testing.assert_close(logits(again), logits(child))


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
