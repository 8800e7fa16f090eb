from collections.abc import Callable
from pathlib import Path

from tightrope.artifacts.files import read_json
from tightrope.int8.costs import measure_costs
from tightrope.int8.quantize import quantize_onnx
from tiny_model import TinyModel

SHAPES = [{"batch": 1, "sequence": 8}, {"batch": 4, "sequence": 64}]


def costs_of(tiny: TinyModel, quantized: Path, target: Path) -> dict:
    settings = {"shapes": SHAPES, "host": "here", "threads": 1, "libraries": {}}
    measure_costs(tiny.simplified, quantized, target, **settings)
    return read_json(target)


def test_every_operator_has_seconds_at_every_shape(
    tiny: TinyModel, tmp_path: Path, told: Callable[[], dict[str, list[int]]]
) -> None:
    record = costs_of(tiny, tiny.u8s8, tmp_path / "a.json")
    operators = record["operators"]
    assert (record["host"], len(operators)) == ("here", 14)
    for rows in operators.values():
        assert [{key: row[key] for key in ("batch", "sequence")} for row in rows] == SHAPES
        assert all(row[name] > 0 for row in rows for name in ("float_s", "int8_s"))
    few, many = operators["bert.encoder.layer.0.intermediate.dense"]
    assert many["float_s"] > 2 * few["float_s"], "32 times the rows"
    # of the last layer the classifier reads one row of each text
    last = operators["bert.encoder.layer.1.intermediate.dense"][1]
    assert last["float_s"] < 0.5 * many["float_s"]
    percents = told()["costs"]
    assert len(percents) >= 28
    assert percents == sorted(percents)
    assert {7, 14, 50, 100} <= set(percents)


def test_only_what_is_quantized_has_a_cost(tiny: TinyModel, tmp_path: Path) -> None:
    left, paths = "bert.pooler.dense", (tiny.simplified, tiny.minmax, tmp_path / "a.onnx")
    quantize_onnx(*paths, scheme="u8s8", repair={"float": [left]})
    operators = costs_of(tiny, tmp_path / "a.onnx", tmp_path / "a.json")["operators"]
    assert left not in operators
    assert len(operators) == 13
