"""Smaller structures of a real tiny model are built, timed beside it and chosen from."""

import io
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from checkpoints import make_checkpoint
from msgspec import convert
from short_timing import SHAPE, timing_settings
from splits import prepare_digits, split_of
from tightrope.artifacts.files import read_json
from tightrope.checkpoint.source import prepare_checkpoint
from tightrope.jobs.child import supervised
from tightrope.measure import structure_choice
from tightrope.measure.run import TimingSettings
from tightrope.measure.structures import (
    measure_structures,
    read_ratios,
    structure_in,
    timed_structures,
)
from tightrope.model.pruning import FIELD, Changes
from tightrope.model.structures import Structure
from tightrope.signature import IMAGE
from tightrope.training.train import TrainingSettings, train_model
from tiny_model import LIMITS, LONGEST, OPTIONS, TinyModel

PARENT = Structure((2,), 128, 2)
VARIANT = "cpu-pytorch-fp32"
pytestmark = pytest.mark.usefixtures("short_rounds")


def settings(engine: str = "pytorch", source: str = "checkpoint") -> TimingSettings:
    options = OPTIONS.get(engine, {})
    plan = {"variant": f"cpu-{engine}-fp32", "options": options, "source": source}
    return timing_settings(**plan, heads=True)


@pytest.fixture(scope="module")
def source(tiny: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint of a model that starts from the tiny one."""
    manifest = tmp_path_factory.mktemp("child") / "source" / "checkpoint.json"
    parent = f"path:{tiny.checkpoint.parent}"
    prepare_checkpoint(manifest, source=parent, expected_sha256=None, seed=0)
    return manifest


@pytest.fixture(scope="module")
def table(tiny: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("structures") / "table.json"
    measure_structures(tiny.checkpoint, tiny.split("timing"), target, settings(), host="here")
    return target


def analysed(source: Path, train: Path, sequence: int = LONGEST) -> Callable[[], Any]:
    facts = {"names": None, "sequence": sequence, "seed": 0, "threads": 1}
    return partial(structure_choice.analysis, source, train, **facts)


def pruned(source: Path, data: Path, structure: Path, target: Path) -> dict[str, Any]:
    """The model as train_model writes it without a recipe: its manifest."""
    document = read_json(structure)
    changes = Changes(None, document["prune"], document["target"])
    chosen = TrainingSettings(recipe=None, inputs={}, seed=0, threads=1, changes=changes)
    files = {"source": source, "data": split_of(data, "train"), "terminal": io.StringIO()}
    supervised(partial(train_model, target, chosen, **files), limits=LIMITS)
    return read_json(target)


def test_the_table_has_rounds_of_each_structure_beside_the_model_itself(tiny, table: Path) -> None:
    assert not [*(tiny.checkpoint.parents[1] / "work").iterdir()]
    document = read_json(table)
    assert (document["variant"], document["shape"]) == (VARIANT, SHAPE)
    groups = document["groups"]
    parents = [document["parent"], *(one["structures"][0] for one in groups)]
    assert all(convert(one, Structure) == PARENT for one in parents)
    for count, group in zip((4, 2), groups, strict=True):
        assert all(len(one["blocks_s"]) == count for one in group["rounds"])
    parent, ratios = read_ratios(table)
    assert parent == PARENT
    sizes = {Structure((depth,), width, 2) for depth in (1, 2) for width in (64, 128)}
    assert set(ratios) == sizes | {Structure((2,), 128, 1)}
    assert all(ratio > 0 for ratio in ratios.values())


def test_a_speed_up_is_measured_and_what_it_keeps_is_a_checkpoint(tiny, source, table, tmp_path):
    target, speedup = tmp_path / "structure.json", 100.0
    files = {"table": table, "checkpoint": tiny.checkpoint, "timing": tiny.split("timing")}
    judged = analysed(source, tiny.split("train"))
    structure_choice.choose_by_latency(target, judged, speedup, settings(), **files, host="here")
    document = read_json(target)
    assert 1 <= len(document["tried"]) <= structure_choice.TRIES
    assert all(one["rounds"] for one in document["tried"])
    asked = {"speedup": speedup, "variant": VARIANT, "shape": SHAPE}
    assert document["target"]["asked"] == asked
    # which layers, neurons and heads go is up to times that are too short to tell
    assert document["target"]["short_by"] > 1
    manifest = pruned(source, tiny.data, target, tmp_path / "checkpoint" / "checkpoint.json")
    assert manifest["prune"]["target"] == document["target"]
    assert not {"neurons", "kept_heads"} & set(manifest["prune"])
    config = read_json(tmp_path / "checkpoint" / "config.json")
    kept = {"depths": [config["num_hidden_layers"]], "width": config["intermediate_size"]}
    heads = config.get(FIELD, {"heads": PARENT.heads})
    assert kept | heads == document["structure"]
    # with all its heads it is one that transformers loads
    assert (FIELD in config) == (heads["heads"] < 2)


def test_an_engine_from_onnx_is_exported_and_simplified_first(tiny: TinyModel) -> None:
    timing, asked = tiny.split("timing"), settings("onnxruntime", "onnx")
    with timed_structures(tiny.checkpoint, timing, asked, PARENT) as timed:
        rounds = timed.rounds([Structure((1,), 64, 1)])
    assert all(len(one.blocks_s) == 2 for one in rounds)


def make_convnext(folder: Path, data: Path) -> Path:
    """A ConvNeXt of one and three blocks with random weights, and digits."""
    blocks = "scratch:convnext?num_stages=2&hidden_sizes=[8,16]&depths=[1,3]&image_size=16"
    prepare_digits(data, pool=10, train=60, evaluation=20)
    return make_checkpoint(folder, blocks, split_of(data, "train"), task=IMAGE)


def test_blocks_of_a_convnext_are_timed_and_chosen(tmp_path: Path) -> None:
    data = tmp_path / "data" / "data.json"
    manifest = supervised(make_convnext, tmp_path, data, limits=LIMITS)
    parent = supervised(structure_in, manifest, limits=LIMITS)
    assert parent == Structure((1, 3), 32)
    shape = {"batch": 1, "height": 16, "width": 16}
    asked = replace(settings(), shapes=[shape])
    table, target = tmp_path / "table.json", tmp_path / "structure.json"
    measure_structures(manifest, split_of(data, "timing"), table, asked, host="here")
    measured = {Structure((1, depth), width) for depth in (1, 3) for width in (16, 32)}
    assert set(read_ratios(table)[1]) == measured
    # 100 parameters are less than any structure has: one narrow block of each stage is left
    source = tmp_path / "source" / "checkpoint.json"
    judged = analysed(source, split_of(data, "train"), 1)
    structure_choice.choose_by_parameters(target, judged, 100, limits=LIMITS)
    kept = read_json(target)["prune"]["blocks"]
    assert [len(stage) for stage in kept] == [1, 1]
    smaller = tmp_path / "smaller" / "checkpoint.json"
    pruned(source, data, target, smaller)
    document = read_json(target)
    assert document["target"]["short_by"] > 1
    assert read_json(smaller)["parameters"] == document["target"]["reached"]["parameters"]
    assert read_json(smaller.with_name("config.json"))[FIELD] == {"inner": [16, 32]}
    # and it is a parent itself
    assert supervised(structure_in, smaller, limits=LIMITS) == Structure((1, 1), 16)
