from quantized_files import quantized
from tightrope.artifacts.files import read_json
from tightrope.int8.costs import measure_costs

SHAPES = [{"batch": 1, "sequence": 8}, {"batch": 16, "sequence": 64}]
LEFT = "bert.pooler.dense"


def test_every_quantized_operator_has_seconds_at_every_shape(tiny, tmp_path, told, monkeypatch):
    monkeypatch.setattr("tightrope.int8.costs.BLOCK_SECONDS", 0.004)
    quantized(tiny, tmp_path / "a.onnx", float=[LEFT])
    settings = {"shapes": SHAPES, "host": "here", "threads": 1, "libraries": {}}
    measure_costs(tiny.simplified, tmp_path / "a.onnx", tmp_path / "a.json", **settings)
    record = read_json(tmp_path / "a.json")
    operators = record["operators"]
    assert (record["host"], len(operators), LEFT in operators) == ("here", 13, False)
    for rows in operators.values():
        assert [{key: row[key] for key in ("batch", "sequence")} for row in rows] == SHAPES
        assert all(row[name] > 0 for row in rows for name in ("float_s", "int8_s"))
    few, many = operators["bert.encoder.layer.0.intermediate.dense"]
    assert many["float_s"] > 2 * few["float_s"], "128 times the rows"
    # of the last layer the classifier reads one row of each text
    last = operators["bert.encoder.layer.1.intermediate.dense"][1]
    assert last["float_s"] < 0.5 * many["float_s"]
    percents = told()["costs"]
    assert percents == sorted(percents) and len(percents) >= 26
    assert {50, 100} <= set(percents)
