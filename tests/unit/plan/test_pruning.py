"""Targets of pruning: what is planned for them, and what is refused."""

from typing import Any

import pytest
from configured import configured, refused
from tightrope.plan import pruning

LARGE: dict[str, Any] = {"checkpoint": "scratch:bert?max_position_embeddings=64", "data": "random"}
SHAPES = [{"batch": 2, "sequence": 16}, {"batch": 1, "sequence": 32}]
IMAGES = {"task": "image-classification", "checkpoint": "scratch:convnext", "data": "digits"}
PICTURE = {"batch": 1, "height": 16, "width": 16}
TABLE = "onnxruntime-fp32-2x16"
PLACE = "config: models.small.prune"


def family(prune: dict[str, Any], parent: dict[str, Any] = LARGE) -> dict[str, Any]:
    models = {"large": {**parent, "max_sequence": 32}, "small": {"from": "large", "prune": prune}}
    return {"shapes": [*SHAPES, PICTURE], "emulated": True, "models": models}


@pytest.mark.parametrize(
    ("prune", "table", "asked"),
    [
        ({"target": "2.5x"}, TABLE, {"speedup": 2.5}),
        ({"target": "2x", "heads": "auto"}, f"{TABLE}-heads", {"speedup": 2.0, "heads": True}),
        ({"parameters": 1000}, None, {"parameters": 1000}),
        ({"parameters": 9000, "heads": "auto"}, None, {"parameters": 9000, "heads": True}),
    ],
)
def test_a_speed_up_reads_a_table_of_the_parent_parameters_need_none(prune, table, asked) -> None:
    config = configured(**family(prune))
    structure = {"structure": "artifacts/small/structure.json"}
    assert pruning.structure_of_model(config, "small") == structure
    assert pruning.asked_of_model(config, "small") == asked
    assert pruning.prune_of_model(config, "small") == {"layers": None, "intermediate": None}
    inputs, engine = (
        pruning.structure_inputs(config, "small"),
        pruning.engine_of_choice(config, "small"),
    )
    if table is None:
        assert (inputs, engine) == ({}, None)
        return
    assert inputs == {
        "table": f"artifacts/large/structures/{table}.json",
        "checkpoint": "artifacts/large/checkpoint/checkpoint.json",
        "timing": "artifacts/large/splits/timing.json",
    }
    assert (engine["variant"], engine["source"]) == ("cpu-onnxruntime-fp32", "onnx")
    assert (engine["shape"], engine.get("heads")) == (SHAPES[0], asked.get("heads"))


def test_sizes_without_a_target_plan_nothing_and_engines_the_shape_of_it() -> None:
    sizes = {"layers": None, "intermediate": None}
    for prune in ({"layers": 2}, {"heads": 1}):
        config = configured(**family(prune))
        assert pruning.structure_of_model(config, "small") == {}
        assert pruning.prune_of_model(config, "small") == {**sizes, **prune}
    at = {"batch": 4, "sequence": 64}
    config = configured(**family({"target": "2x", "at": at, "engine": "openvino-fp32"}))
    engine = pruning.engine_of_table(config, "large", "openvino-fp32-4x64")
    assert engine == pruning.engine_of_choice(config, "small")
    assert engine["options"]["buckets"] == {"batch": [4], "sequence": [64]}
    images = configured(**family({"target": "2x", "engine": "pytorch-fp32"}, IMAGES))
    table = pruning.structure_inputs(images, "small")["table"]
    assert table == "artifacts/large/structures/pytorch-fp32-1x16x16.json"
    engine = pruning.engine_of_choice(images, "small")
    assert (engine["source"], engine["shape"]) == ("checkpoint", PICTURE)


def test_what_cannot_be_a_target_is_named() -> None:
    for prune, words in (
        ({"target": "2x", "parameters": 9}, ": has target and parameters; give one"),
        ({"target": "2x", "layers": 3}, ": has target, which chooses the sizes, and layers; rem"),
        ({"at": SHAPES[0]}, ".at: only for prune.target; remove it, or add one"),
        ({"parameters": 9, "engine": "pytorch-fp32"}, ".engine: only for prune.target"),
        ({"heads": "auto"}, ".heads = auto: only for a target; say how many to keep"),
        ({"target": "1x"}, ".target = 1x: must be above 1x, the speed of the parent"),
        ({"target": "fast"}, ".target = 'fast': must be a speed-up over the model"),
        ({"target": "2x", "at": PICTURE}, f".at = {PICTURE}: a shape of text-"),
        ({"target": "2x", "engine": "tvm-fp32"}, ".engine = 'tvm-fp32': must be one of"),
    ):
        assert refused(**family(prune)).startswith(f"{PLACE}{words}")
        message = refused(models={"alone": {**LARGE, "prune": {"target": "2x"}}})
        assert message.startswith("config: models.alone.prune.target: ")
        assert message.endswith("(from: NAME)")
