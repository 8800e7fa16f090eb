"""Targets of pruning: what is planned for them, and what is refused."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tightrope.errors import ConfigError
from tightrope.plan import structures
from tightrope.plan.config import checked

LARGE: dict[str, Any] = {"checkpoint": "scratch:bert?max_position_embeddings=64", "data": "random"}
SHAPES = [{"batch": 2, "sequence": 16}, {"batch": 1, "sequence": 32}]
IMAGES = {"task": "image-classification", "checkpoint": "scratch:convnext", "data": "digits"}
PICTURE = {"batch": 1, "height": 16, "width": 16}
NAMES = SimpleNamespace(model="small")


@pytest.fixture(scope="session")
def schema(repository: Path) -> Path:
    return repository / "config" / "schema.yaml"


def family(prune: dict[str, Any], parent: dict[str, Any] = LARGE, **keys: Any) -> dict[str, Any]:
    shapes = [*SHAPES, PICTURE]
    models = {"large": {**parent, "max_sequence": 32}, "small": {"from": "large", "prune": prune}}
    return {"shapes": shapes, "emulated": True, "models": models, **keys}


def test_sizes_without_a_target_plan_nothing_and_are_the_parameters_as_before(schema: Path) -> None:
    config = checked(family({"layers": 2}), schema)
    assert structures.structure_of_model(config, NAMES) == {}
    assert structures.prune_of_model(config, NAMES) == {"layers": 2, "intermediate": None}
    config = checked(family({"heads": 1}), schema)
    kept = structures.prune_of_model(config, NAMES)
    assert kept == {"layers": None, "intermediate": None, "heads": 1}


def test_a_target_chooses_heads_where_it_is_told_to(schema: Path) -> None:
    config = checked(family({"target": "2x", "heads": "auto"}), schema)
    table = structures.structure_inputs(config, NAMES)["table"]
    assert table == "artifacts/large/structures/onnxruntime-fp32-2x16-heads.json"
    assert structures.asked_of_model(config, NAMES) == {"speedup": 2.0, "heads": True}
    engine = structures.engine_of_model(config, NAMES)
    assert engine is not None
    assert engine["heads"] is True
    assert structures.prune_of_model(config, NAMES) == {"layers": None, "intermediate": None}
    parameters = checked(family({"parameters": 9000, "heads": "auto"}), schema)
    assert structures.asked_of_model(parameters, NAMES) == {"parameters": 9000, "heads": True}


def test_a_speed_up_reads_a_table_of_the_parent_at_the_first_shape(schema: Path) -> None:
    config = checked(family({"target": "2.5x"}), schema)
    assert structures.structure_of_model(config, NAMES) == {
        "structure": "artifacts/small/structure.json"
    }
    assert structures.structure_inputs(config, NAMES) == {
        "table": "artifacts/large/structures/onnxruntime-fp32-2x16.json",
        "checkpoint": "artifacts/large/checkpoint/checkpoint.json",
        "timing": "artifacts/large/splits/timing.json",
    }
    assert structures.asked_of_model(config, NAMES) == {"speedup": 2.5}
    engine = structures.engine_of_model(config, NAMES)
    assert engine is not None
    assert (engine["variant"], engine["source"]) == ("cpu-onnxruntime-fp32", "onnx")
    assert engine["shape"] == SHAPES[0]


def test_the_engine_has_one_program_for_the_shape_of_the_target(schema: Path) -> None:
    at = {"batch": 4, "sequence": 64}
    prune = {"target": "2x", "at": at, "engine": "openvino-fp32"}
    config = checked(family(prune), schema)
    table = SimpleNamespace(model="large", structures="openvino-fp32-4x64")
    engine = structures.engine_of_table(config, table)
    assert engine == structures.engine_of_model(config, NAMES)
    assert engine["options"]["buckets"] == {"batch": [4], "sequence": [64]}


def test_a_number_of_parameters_measures_nothing(schema: Path) -> None:
    config = checked(family({"parameters": 1000}), schema)
    assert structures.structure_inputs(config, NAMES) == {}
    assert structures.engine_of_model(config, NAMES) is None
    assert structures.asked_of_model(config, NAMES) == {"parameters": 1000}


def test_a_convnext_is_timed_at_its_images(schema: Path) -> None:
    config = checked(family({"target": "2x", "engine": "pytorch-fp32"}, IMAGES), schema)
    inputs = structures.structure_inputs(config, NAMES)
    assert inputs["table"] == "artifacts/large/structures/pytorch-fp32-1x16x16.json"
    engine = structures.engine_of_model(config, NAMES)
    assert engine is not None
    assert (engine["source"], engine["shape"]) == ("checkpoint", PICTURE)


PLACE = "config: models.small.prune"


@pytest.mark.parametrize(
    ("prune", "words"),
    [
        ({"target": "2x", "parameters": 9}, f"{PLACE}: has target and parameters; give one"),
        (
            {"target": "2x", "layers": 3},
            f"{PLACE}: has target, which chooses the sizes, and layers; remove one",
        ),
        ({"at": SHAPES[0]}, f"{PLACE}.at: only for prune.target; remove it, or add one"),
        ({"parameters": 9, "engine": "pytorch-fp32"}, f"{PLACE}.engine: only for prune.target"),
        ({"target": "1x"}, f"{PLACE}.target = 1x: must be above 1x, the speed of the parent"),
        ({"target": "fast"}, f"{PLACE}.target = 'fast': must be a speed-up over the model"),
        ({"target": "2x", "at": PICTURE}, f"{PLACE}.at = {PICTURE}: a shape of text-"),
        ({"target": "2x", "engine": "tvm-fp32"}, f"{PLACE}.engine = 'tvm-fp32': must be one of"),
    ],
)
def test_what_cannot_be_a_target_is_named(schema: Path, prune: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        checked(family(prune), schema)
    assert str(caught.value).startswith(words)
    assert "\n" not in str(caught.value)


def test_a_target_needs_a_trained_parent(schema: Path) -> None:
    models = {"alone": {**LARGE, "prune": {"target": "2x"}}}
    with pytest.raises(ConfigError, match=r"alone\.prune\.target: .*\(from: NAME\)"):
        checked({"models": models}, schema)
