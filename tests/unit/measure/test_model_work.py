"""Operations and least bytes of a model, from its ONNX file."""

from functools import partial
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper, parser
from tightrope.inputs.arrays import Arrays
from tightrope.jobs.child import supervised
from tightrope.onnx.file import save_onnx
from tightrope.records.profile import Work
from tightrope.summary.profile import least_bytes
from tiny_model import LIMITS

ROWS, WIDTH, CLASSES = 1000, 8, 3
# the two constants of axes, int64
AXES = 3 * 8


def works(file: Path, batches: list[Arrays]) -> list[Work]:
    """In a child, which alone loads ONNX Runtime."""
    from tightrope.measure.model_work import model_works

    return model_works(file, batches, 1)


def works_of(file: Path, *batches: Arrays) -> list[Work]:
    found: list[Work] = supervised(partial(works, file, list(batches)), limits=LIMITS)
    return found


def texts(batch: int, sequence: int) -> Arrays:
    ids = np.ones((batch, sequence), np.int64)
    return {"input_ids": ids, "attention_mask": ids}


def write_model(path: Path, *, table_is_added: bool = False) -> Path:
    """Look up rows of a table, add them up, and multiply the sum with a matrix."""
    output = "before" if table_is_added else "logits"
    added = """
            mean = ReduceMean <keepdims = 0> (table, all)
            logits = Add (before, mean)"""
    model = parser.parse_model(
        f"""<ir_version: 10, opset_import: ["" : 18]>
        net (int64[batch, sequence] input_ids, int64[batch, sequence] attention_mask)
            => (float[batch, {CLASSES}] logits)
        {{
            rows = Gather (table, input_ids)
            sum = ReduceMean <keepdims = 0> (rows, axes)
            {output} = MatMul (sum, matrix){added if table_is_added else ""}
        }}"""
    )
    constants = {
        "table": np.ones((ROWS, WIDTH), np.float32),
        "matrix": np.ones((WIDTH, CLASSES), np.float32),
        **{"axes": np.array([1]), "all": np.array([0, 1])},
    }
    model.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in constants.items()
    )
    for number, node in enumerate(model.graph.node):
        node.name = f"node{number}"
    onnx.checker.check_model(model)
    save_onnx(model, path)
    return path


def test_weights_count_once_in_their_type_and_a_table_by_its_rows(tmp_path: Path) -> None:
    batch, sequence = 2, 5
    file = write_model(tmp_path / "a.onnx")
    known, small, large = works_of(file, texts(batch, sequence), texts(1, 1), texts(16, 500))
    inputs, logits = 2 * 8 * batch * sequence, 4 * batch * CLASSES
    for precision, width in {"fp32": 4, "bf16": 2, "int8": 1}.items():
        weights = width * (batch * sequence * WIDTH + WIDTH * CLASSES)
        assert least_bytes(known, precision) == inputs + logits + weights + AXES
    assert known.groups["products"] == 2 * batch * WIDTH * CLASSES
    assert sum(known.groups.values()) == known.operations
    # no more of a table is read than it has
    own = 2 * 8 * 16 * 500 + 4 * 16 * CLASSES
    most = least_bytes(large, "fp32")
    assert most == own + 4 * (ROWS * WIDTH + WIDTH * CLASSES) + AXES
    assert least_bytes(small, "fp32") < most
    # one that is computed with as well is read as a whole
    file = write_model(tmp_path / "a.onnx", table_is_added=True)
    (found,) = works_of(file, texts(1, 1))
    own = 16 + 4 * CLASSES + AXES
    assert least_bytes(found, "fp32") == own + 4 * (ROWS * WIDTH + WIDTH * CLASSES)
