import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from breaking import killed_at
from safetensors.torch import load_file, save_file
from splits import prepare_splits
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.errors import TightropeError
from tightrope.inputs.encode import load_encoder
from tightrope.model.activations import FastSwish
from tightrope.model.module import load_module
from tightrope.model.pruning import Changes
from tightrope.training.recipe import whole_recipe
from tightrope.training.step import SparseTraining, kept, share_at
from tiny_training import RECIPE, accuracy, logits, prepare_source, train
from transformers import GPT2Config, GPT2ForSequenceClassification


def manifest_of(checkpoint: Path) -> CheckpointManifest:
    return read_manifest(checkpoint, CheckpointManifest)


def weights_of(checkpoint: Path) -> bytes:
    return (checkpoint.parent / "model.safetensors").read_bytes()


def test_fine_tuning_learns_the_labels_and_says_what_was_made(trained: Path, texts: Path) -> None:
    assert accuracy(trained, texts) > 0.95
    manifest = manifest_of(trained)
    assert manifest["task"] == "text-classification"
    assert manifest["labels"] == ["bad", "good"]
    assert manifest["architecture"] == "BertForSequenceClassification"
    assert (manifest["vocabulary"], manifest["max_sequence"]) == (200, 64)
    assert manifest["recipe"] == whole_recipe(RECIPE, 0)
    training = manifest["training"]
    assert training is not None and training["steps"] == 32
    assert training["truncation"] == {"texts": 120, "truncated": 0, "max_sequence": 32}
    assert training["losses"][-1] < training["losses"][0]
    assert set(manifest["files"]) >= {"config.json", "model.safetensors", "tokenizer.json"}


def test_a_repeat_has_the_same_bytes_and_tells_its_progress(trained, tmp_path, texts, told) -> None:
    torch.set_num_threads(2)
    source = prepare_source(tmp_path / "elsewhere" / "source")
    again = train(tmp_path / "again", source, texts, RECIPE)
    assert again.read_bytes() == trained.read_bytes()
    assert torch.get_num_threads() == 1
    percents = told()["fine-tuning"]
    assert percents == sorted(percents) and len(set(percents)) > 30 and percents[-1] == 100


def test_another_activation_stays_with_the_checkpoint(trained, tmp_path, source, texts) -> None:
    relu = train(tmp_path / "relu", source, texts, RECIPE, changes=Changes("relu"))
    assert (manifest_of(relu)["activation"], manifest_of(trained)["activation"]) == ("relu", None)
    # not swapped at the end
    assert weights_of(relu) != weights_of(trained)
    assert accuracy(relu, texts) > 0.95
    # a checkpoint that was swapped stays so as the source of another model
    source = prepare_source(tmp_path / "a", f"path:{trained.parent}")
    swapped = train(tmp_path / "swapped", source, texts, changes=Changes("fast_swish"))
    source = prepare_source(tmp_path / "b", f"path:{swapped.parent}")
    again = train(tmp_path / "again", source, texts)
    assert weights_of(trained) == weights_of(swapped) == weights_of(again)
    for one, kind in ((relu, torch.nn.ReLU), (swapped, FastSwish), (again, FastSwish)):
        layers = load_module(one.parent, torch.float32).bert.encoder.layer
        assert [type(layer.intermediate.intermediate_act_fn) for layer in layers] == [kind] * 2


def with_outputs(trained: Path, folder: Path, names: tuple[str, str]) -> Path:
    """The source of the checkpoint with other names of its outputs, and bad its second."""
    shutil.copytree(trained.parent, folder)
    config = json.loads((folder / "config.json").read_text())
    config["id2label"] = dict(zip("01", names, strict=True))
    (folder / "config.json").write_text(json.dumps(config))
    weights = load_file(folder / "model.safetensors")
    for name in ("classifier.weight", "classifier.bias"):
        weights[name] = weights[name].flip(0).contiguous()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return prepare_source(folder / "source", f"path:{folder}")


ONCE = {**RECIPE, "epochs": 1}
UNNAMED = ("LABEL_0", "LABEL_1")


@pytest.mark.parametrize("recipe", [None, {**ONCE, "learning_rate": 1e-9}])
def test_outputs_are_put_in_the_order_of_the_labels(recipe, trained, tmp_path, texts) -> None:
    """Those of the checkpoint, or where these say nothing those of the configuration."""
    source = with_outputs(trained, tmp_path / "swapped", ("GOOD", "BAD"))
    assert accuracy(train(tmp_path / "own", source, texts, recipe), texts) > 0.95
    source = with_outputs(trained, tmp_path / "unnamed", UNNAMED)
    assert accuracy(train(tmp_path / "by-order", source, texts, recipe), texts) < 0.05
    named = train(tmp_path / "named", source, texts, recipe, labels=["good", "bad"])
    assert accuracy(named, texts) > 0.95
    assert manifest_of(named)["labels"] == ["bad", "good"]
    if recipe is None:
        np.testing.assert_array_equal(logits(named, texts), logits(trained, texts))
        assert manifest_of(named)["training"] is None


def test_other_labels_and_a_model_without_a_head_are_refused(trained, tmp_path, source, texts):
    unnamed = with_outputs(trained, tmp_path / "unnamed", UNNAMED)
    with pytest.raises(TightropeError, match="labels lacks 'bad' and has 'poor', unlike"):
        train(tmp_path / "other", unnamed, texts, labels=["good", "poor"])
    with pytest.raises(TightropeError, match="has 2 outputs, labels lists 3 names"):
        train(tmp_path / "three", unnamed, texts, labels=["good", "bad", "odd"])
    with pytest.raises(TightropeError, match=r"it gets a new head, .* remove labels"):
        train(tmp_path / "new", source, texts, RECIPE, labels=["good", "bad"])
    encoder = prepare_source(tmp_path / "source", f"path:{source.parent}")
    with pytest.raises(TightropeError, match="BertModel has no classification head"):
        train(tmp_path / "out", encoder, texts)


def test_without_a_recipe_another_count_of_labels_is_no_use(trained: Path, tmp_path: Path) -> None:
    source = prepare_source(tmp_path / "source", f"path:{trained.parent}")
    lines = [f"film {i},{i % 3}" for i in range(60)]
    (tmp_path / "three.csv").write_text("\n".join(["text,label", *lines]))
    data, columns = tmp_path / "data/data.json", {"text": "text", "label": "label"}
    sizes = {"train": None, "evaluation": 9}
    table = f"files:{tmp_path}/three.csv"
    prepare_splits(data, source=table, columns=columns, splits=sizes, pool=9, seed=0)
    with pytest.raises(TightropeError, match=r"has 2 outputs, the data has 3 labels"):
        train(tmp_path / "out", source, data)
    widened = train(tmp_path / "out", source, data, ONCE)
    assert manifest_of(widened)["labels"] == ["0", "1", "2"]


def test_one_batch_of_one_epoch_trains(tmp_path: Path, source: Path, texts: Path) -> None:
    trained = train(tmp_path / "trained", source, texts, {**ONCE, "batch": 1000})
    assert manifest_of(trained)["training"]["steps"] == 1


def test_random_data_need_neither_tokenizer_nor_recipe(tmp_path: Path, source: Path) -> None:
    data = tmp_path / "data" / "data.json"
    sizes = {"train": None, "evaluation": 4}
    prepare_splits(data, source="random", columns={}, splits=sizes, pool=4, seed=0)
    checkpoint = train(tmp_path / "out", source, data)
    assert len(manifest_of(checkpoint)["labels"]) == 2
    assert "tokenizer.json" not in manifest_of(checkpoint)["files"]
    assert logits(checkpoint, data).shape == (4, 2)
    with pytest.raises(TightropeError, match="no examples to train on"):
        train(tmp_path / "trained", source, data, RECIPE)


def test_too_many_tokens_and_no_tokenizer_are_errors(trained, tmp_path, source, texts) -> None:
    with pytest.raises(TightropeError, match="takes 64 tokens, max_sequence is 128"):
        load_encoder(trained, max_sequence=128)
    with pytest.raises(TightropeError, match=r"takes 64 tokens, train\.sequence is 100"):
        train(tmp_path, source, texts, {**RECIPE, "sequence": 100})
    files = shutil.ignore_patterns("*token*", "checkpoint.json")
    shutil.copytree(trained.parent, tmp_path / "bare", ignore=files)
    bare = prepare_source(tmp_path / "source", f"path:{tmp_path / 'bare'}")
    with pytest.raises(TightropeError, match=r"has no tokenizer; put its tokenizer\.json"):
        train(tmp_path / "out", bare, texts)


def test_a_model_that_looks_for_padding_ids_is_not_yet_taken(tmp_path: Path, texts: Path) -> None:
    """Batches are padded with zeros and a mask, which such a model does not look at."""
    sizes = {"n_layer": 1, "n_head": 2, "n_embd": 16, "n_positions": 64, "vocab_size": 200}
    model = GPT2ForSequenceClassification(GPT2Config(**sizes))
    model.save_pretrained(tmp_path / "gpt")
    source = prepare_source(tmp_path / "source", f"path:{tmp_path / 'gpt'}")
    with pytest.raises(TightropeError, match="not supported yet: its logits depend on the pad"):
        train(tmp_path / "checkpoint", source, texts)


def test_frozen_modules_keep_their_weights_and_the_others_learn(tmp_path, source, texts, trained):
    frozen = ["bert.embeddings", "bert.encoder.layer.0"]
    checkpoint = train(tmp_path, source, texts, {**RECIPE, "frozen": frozen, "learning_rate": 1e-2})
    before, after = (load_file(one.parent / "model.safetensors") for one in (source, checkpoint))
    kept = {f"bert.{name}" for name in before if torch.equal(before[name], after[f"bert.{name}"])}
    assert kept == {name for name in after if name.startswith(tuple(f"{one}." for one in frozen))}
    assert accuracy(checkpoint, texts) > 0.9
    assert manifest_of(checkpoint)["parameters"] == manifest_of(trained)["parameters"]
    for unfit, words in (
        (["bert.encoder.laye"], r"has no module bert\.encoder\.laye with weights; name some of "),
        (["bert", "classifier"], "nothing is left to train"),
    ):
        with pytest.raises(TightropeError, match=words):
            train(tmp_path, source, texts, {**RECIPE, "frozen": unfit})


def test_the_smallest_weights_are_zero_ever_more_until_the_last_third() -> None:
    sizes = torch.tensor([[4.0, 1.0, 3.0, 2.0], [8.0, 7.0, 6.0, 5.0]])
    assert kept(sizes, 0).all()
    assert kept(sizes, 5).int().tolist() == [[0, 0, 0, 0], [1, 1, 1, 0]]
    shares = [share_at(step / 30, 0.8) for step in range(31)]
    assert shares == sorted(shares)
    assert (shares[0], shares[20], shares[30]) == (0, 0.8, 0.8)


def test_a_model_is_as_sparse_as_asked(source: Path, texts: Path, tmp_path: Path) -> None:
    """Also where it was interrupted, after the first choice of the weights that are zero."""
    sparse = {**RECIPE, "sparsity": 0.5}
    whole = train(tmp_path / "whole", source, texts, sparse)
    model = load_module(whole.parent, torch.float32)
    weights = SparseTraining(model, 0.5, steps=1).weights
    assert len(weights) == 2 * 6 + 1  # with the pooler, without the output layer
    for weight in weights:
        assert (weight == 0).float().mean().item() == pytest.approx(0.5, abs=0.01)
    assert accuracy(whole, texts) > 0.95
    state = tmp_path / "state"
    with killed_at(29):
        train(tmp_path / "again", source, texts, sparse, state=state)
    assert list(state.iterdir())
    again = train(tmp_path / "again", source, texts, sparse, state=state)
    assert again.read_bytes() == whole.read_bytes()
