import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.encode import load_encoder
from tightrope.int8.calibrate import calibration_examples
from tightrope.int8.ranges import BINS, LEVELS, Statistics, collect_statistics
from tightrope.jobs.child import supervised
from tightrope.onnx.attention import attention_in
from tightrope.onnx.file import load_onnx, save_onnx
from tightrope.onnx.session import run_onnx
from tightrope.onnx.weights import weighted_nodes
from tiny_model import LIMITS, LONGEST, SAMPLES, TinyModel


def rows_of(model: TinyModel, samples: int) -> list[Arrays]:
    examples = calibration_examples(model.split("calibration"), samples)
    return load_encoder(model.checkpoint, max_sequence=LONGEST)(examples)


def statistics_of(path: Path, rows: list[Arrays], method: str = "minmax") -> Statistics:
    return collect_statistics(path, rows, method=method, percentile=99.0, threads=1)


def table_model(folder: Path, values: np.ndarray) -> Path:
    """A model that looks its inputs up in `values` and multiplies each with one weight."""
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["rows"], name="lookup"),
        helper.make_node("MatMul", ["rows", "weight"], ["logits"], name="dense"),
    ]
    constants = {"table": values.reshape(len(values), -1), "weight": np.ones((1, 2))}
    graph = helper.make_graph(
        nodes,
        "table",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
            for name in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, None)],
        [
            numpy_helper.from_array(array.astype(np.float32), name)
            for name, array in constants.items()
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    save_onnx(model, folder / "table.onnx")
    return folder / "table.onnx"


def table_rows(*lists: list[int]) -> list[Arrays]:
    ids = [np.array(one, np.int64) for one in lists]
    return [{"input_ids": one, "attention_mask": np.ones_like(one)} for one in ids]


def outputs_of(model: TinyModel, names: list[str], samples: int) -> dict[str, list[np.ndarray]]:
    """Those tensors of the graph on the first samples, each sample run alone."""
    graph = load_onnx(model.simplified)
    kept = {one.name for one in graph.graph.output}
    graph.graph.output.extend(type(graph.graph.output[0])(name=n) for n in names if n not in kept)
    found: dict[str, list[np.ndarray]] = {name: [] for name in names}
    from onnxruntime import InferenceSession

    session = InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    for row in rows_of(model, samples):
        batch = {name: array[None] for name, array in row.items()}
        for name, value in zip(names, session.run(names, batch), strict=True):
            found[name].append(value)
    return found


def test_what_is_quantized_has_a_range_and_what_enters_it_has_channels(tiny: TinyModel) -> None:
    found = statistics_of(tiny.simplified, rows_of(tiny, 2))
    nodes = weighted_nodes(load_onnx(tiny.simplified))
    assert len(nodes) == 14  # query, key, value, output and feed-forward of 2 layers; head
    attention, _ = attention_in(load_onnx(tiny.simplified))
    multiplied = {name for one in attention for name in one.measured}
    assert len(multiplied) == 6  # query, key and value of 2 layers
    assert {name for node in nodes for name in (node.input[0], node.output[0])} == (
        set(found.ranges) - multiplied
    )
    assert multiplied < set(found.ranges)
    assert {node.input[0] for node in nodes} == set(found.channels)


def test_ranges_of_attention_change_no_other_number(
    tiny: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of(tiny, 8)
    found = statistics_of(tiny.simplified, rows)
    monkeypatch.setattr("tightrope.int8.ranges.attention_in", lambda model: ([], {}))
    without = statistics_of(tiny.simplified, rows)
    assert len(without.ranges) == len(found.ranges) - 6
    assert {name: found.ranges[name] for name in without.ranges} == without.ranges
    assert found.channels == without.channels


def test_ranges_are_the_lowest_and_highest_value_of_all_samples(tiny: TinyModel) -> None:
    ranges = statistics_of(tiny.simplified, rows_of(tiny, 5)).ranges
    assert len(ranges) > 20
    for name, arrays in outputs_of(tiny, sorted(ranges), 5).items():
        low, high = min(array.min() for array in arrays), max(array.max() for array in arrays)
        assert ranges[name] == pytest.approx([low, high], abs=1e-4), name


def test_channels_are_those_of_the_last_axis(tiny: TinyModel) -> None:
    channels = statistics_of(tiny.simplified, rows_of(tiny, 5)).channels
    name = next(iter(channels))
    values = np.concatenate([one[0] for one in outputs_of(tiny, [name], 5)[name]])
    assert len(channels[name]["low"]) == 64
    for field, expected in (
        ("low", values.min(0)),
        ("high", values.max(0)),
        ("mean", values.mean(0)),
    ):
        np.testing.assert_allclose(channels[name][field], expected, atol=2e-5)


def test_more_samples_only_widen_minmax(tiny: TinyModel) -> None:
    few = statistics_of(tiny.simplified, rows_of(tiny, 5)).ranges
    many = statistics_of(tiny.simplified, rows_of(tiny, SAMPLES)).ranges
    assert sum(many[name] != few[name] for name in few) > len(few) / 2
    for name, (low, high) in few.items():
        assert many[name][0] <= low + 1e-4
        assert many[name][1] >= high - 1e-4


def test_percentile_cuts_as_many_values_as_it_says(tmp_path: Path) -> None:
    path = table_model(tmp_path, np.linspace(-1, 3, 1000))
    ranges = statistics_of(path, table_rows(list(range(1000))), "percentile").ranges
    width = 2 * 3 / BINS  # of a bin
    assert ranges["rows"] == pytest.approx([-1 + 4 * 0.005, 3 - 4 * 0.005], abs=2 * width)


def test_the_order_of_the_samples_changes_no_histogram(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tightrope.int8.ranges.BINS", 2 * LEVELS)
    path = table_model(tmp_path, np.random.default_rng(0).standard_normal(600) ** 3)
    one, other = table_rows(list(range(100)), list(range(100, 600))), None
    other = one[::-1]
    for method in ("entropy", "percentile"):
        assert statistics_of(path, one, method) == statistics_of(path, other, method)


def test_entropy_cuts_outliers_off_and_keeps_what_is_even(tmp_path: Path) -> None:
    """With as many bins as levels, ONNX Runtime's default, it would be minmax."""
    bell = np.random.default_rng(0).standard_normal(20_000)
    outliers = table_model(tmp_path, np.concatenate([bell, [60.0, -60.0]]))
    low, high = statistics_of(outliers, table_rows(list(range(20_002))), "entropy").ranges["rows"]
    assert bell.max() * 0.7 < high < 20
    assert -20 < low < bell.min() * 0.7
    even = table_model(tmp_path, np.linspace(-2, 2, 20_000))
    low, high = statistics_of(even, table_rows(list(range(20_000))), "entropy").ranges["rows"]
    assert high == pytest.approx(2, abs=0.15)
    assert low == pytest.approx(-2, abs=0.15)


def test_a_tensor_that_is_zero_everywhere_has_the_range_of_zero(tmp_path: Path) -> None:
    path = table_model(tmp_path, np.zeros(8))
    for method in ("minmax", "entropy", "percentile"):
        assert statistics_of(path, table_rows([0, 1, 2]), method).ranges["rows"] == [0, 0]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_named_with_operator_and_sample(tmp_path: Path, value: float) -> None:
    path = table_model(tmp_path, np.array([1.0, 2.0, value, 4.0]))
    rows = table_rows([0, 1], [1, 1, 3], [1, 0], [1, 2])
    words = r"table\.onnx: tensor rows of operator lookup is not finite .* on calibration sample 3"
    with pytest.raises(TightropeError, match=words):
        statistics_of(path, rows)


def grown_bytes(path: Path, few: list[Arrays], many: list[Arrays], method: str) -> int:
    """By how much the peak of resident memory grows from `few` samples to `many`."""
    statistics_of(path, few, method)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    statistics_of(path, many, method)
    return 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


@pytest.mark.parametrize("method", ["minmax", "percentile"])
def test_memory_is_that_of_one_batch_whatever_the_sample_count(
    tiny: TinyModel, method: str
) -> None:
    draw = np.random.default_rng(0)
    rows = [
        {"input_ids": one, "attention_mask": np.ones_like(one)}
        for one in draw.integers(5, 150, (960, LONGEST))
    ]
    tensors = len(statistics_of(tiny.simplified, rows[:1]).ranges)
    activations = tensors * 16 * LONGEST * 64 * 4  # all of them of one batch, in bytes
    arguments = (tiny.simplified, rows[:48], rows, method)
    grown = supervised(grown_bytes, *arguments, limits=LIMITS)
    assert grown < 5 * activations < 57 * activations


def test_collecting_leaves_the_samples_and_the_file_as_they_are(tiny: TinyModel) -> None:
    rows = rows_of(tiny, 4)
    batches = [{name: array[None] for name, array in row.items()} for row in rows]
    before, content = run_onnx(load_onnx(tiny.simplified), batches, threads=1), tiny.simplified
    read = content.read_bytes()
    statistics_of(tiny.simplified, rows)
    assert content.read_bytes() == read
    after = run_onnx(onnx.load(tiny.simplified), batches, threads=1)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


def test_each_pass_tells_how_many_samples_or_tensors_are_done(
    tiny: TinyModel, told: Callable[[], dict[str, list[int]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # few, for entropy tries every range of them
    monkeypatch.setattr("tightrope.int8.ranges.BINS", 2 * LEVELS)
    statistics_of(tiny.simplified, rows_of(tiny, 16), "entropy")
    steps = told()
    assert list(steps) == ["ranges", "histograms", "entropy"]
    for percents in steps.values():
        assert len(set(percents)) > 3
        assert percents == sorted(percents)
        assert percents[-1] == 100
