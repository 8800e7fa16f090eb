"""Operations and least bytes of a model, from its ONNX file."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tightrope.inputs.arrays import Arrays
from tightrope.jobs.child import supervised
from tightrope.measure.profile.precision import work_in
from tightrope.onnx.file import save_onnx
from tiny_model import LIMITS, TinyModel

ROWS, WIDTH, CLASSES = 1000, 8, 3


def works(file: Path, batches: list[Arrays]) -> list[dict[str, Any]]:
    """In a child, which alone loads ONNX Runtime."""
    from tightrope.measure.profile.model_work import model_works

    return model_works(file, batches, 1)


def works_of(file: Path, batches: list[Arrays], precision: str = "fp32") -> list[dict[str, Any]]:
    found = supervised(partial(works, file, batches), limits=LIMITS)
    return [work_in(precision, one) for one in found]


def texts(batch: int, sequence: int) -> Arrays:
    ids = np.ones((batch, sequence), np.int64)
    return {"input_ids": ids, "attention_mask": ids}


def write_model(path: Path, *, table_is_added: bool = False) -> None:
    """Look up rows of a table, add them up, and multiply the sum with a matrix."""
    weights = {"table": (ROWS, WIDTH), "matrix": (WIDTH, CLASSES)}
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["rows"], name="lookup"),
        helper.make_node("ReduceMean", ["rows", "axes"], ["sum"], name="sum", keepdims=0),
        helper.make_node("MatMul", ["sum", "matrix"], ["logits"], name="product"),
    ]
    if table_is_added:
        nodes[2].output[0] = "before"
        nodes += [
            helper.make_node("ReduceMean", ["table", "all"], ["mean"], name="mean", keepdims=0),
            helper.make_node("Add", ["before", "mean"], ["logits"], name="added"),
        ]
    graph = helper.make_graph(
        nodes,
        "model",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
            for name in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", CLASSES])],
        [
            *(
                numpy_helper.from_array(np.ones(shape, np.float32), name)
                for name, shape in weights.items()
            ),
            numpy_helper.from_array(np.array([1]), "axes"),
            numpy_helper.from_array(np.array([0, 1]), "all"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.checker.check_model(model)
    save_onnx(model, path)


# the two constants of axes, int64
AXES = 3 * 8


@pytest.mark.parametrize(("precision", "width"), [("fp32", 4), ("bf16", 2), ("int8-dynamic", 1)])
def test_weights_count_once_in_the_type_of_the_variant_and_a_table_by_its_rows(
    tmp_path: Path, precision: str, width: int
) -> None:
    write_model(tmp_path / "a.onnx")
    batch, sequence = 2, 5
    (found,) = works_of(tmp_path / "a.onnx", [texts(batch, sequence)], precision)
    inputs, logits = 2 * 8 * batch * sequence, 4 * batch * CLASSES
    weights = width * (batch * sequence * WIDTH + WIDTH * CLASSES)
    assert found["least_bytes"] == inputs + logits + weights + AXES
    assert found["groups"]["products"] == 2 * batch * WIDTH * CLASSES
    assert sum(found["groups"].values()) == found["operations"]


def test_no_more_of_a_table_is_read_than_it_has(tmp_path: Path) -> None:
    write_model(tmp_path / "a.onnx")
    small, large = works_of(tmp_path / "a.onnx", [texts(1, 1), texts(16, 500)])
    own = 2 * 8 * 16 * 500 + 4 * 16 * CLASSES
    assert large["least_bytes"] == own + 4 * (ROWS * WIDTH + WIDTH * CLASSES) + AXES
    assert small["least_bytes"] < large["least_bytes"]


def test_a_table_that_is_computed_with_as_well_is_read_as_a_whole(tmp_path: Path) -> None:
    write_model(tmp_path / "a.onnx", table_is_added=True)
    (found,) = works_of(tmp_path / "a.onnx", [texts(1, 1)])
    assert found["least_bytes"] == 16 + 4 * CLASSES + 4 * (ROWS * WIDTH + WIDTH * CLASSES) + AXES


def test_twice_the_batch_is_twice_the_work_on_the_same_weights(tiny: TinyModel) -> None:
    one, two = works_of(tiny.simplified, [texts(1, 32), texts(2, 32)])
    assert two["groups"]["products"] == 2 * one["groups"]["products"]
    assert one["least_bytes"] < two["least_bytes"] < 1.2 * one["least_bytes"]
