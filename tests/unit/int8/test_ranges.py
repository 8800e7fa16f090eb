import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from checkpoints import learnt_checkpoint
from onnx_text import onnx_model
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays
from tightrope.int8.ranges import (
    BINS,
    LEVELS,
    LearntRanges,
    Statistics,
    collect_statistics,
    with_learnt_ranges,
)
from tightrope.jobs.child import supervised
from tightrope.onnx.edit import with_outputs
from tightrope.onnx.file import load_onnx, save_onnx
from tightrope.onnx.session import open_model
from tiny_model import LIMITS, LONGEST, TinyModel

Told = Callable[[], dict[str, list[int]]]


def statistics_of(path: Path, rows: list[Arrays], method: str = "minmax") -> Statistics:
    return collect_statistics(path, rows, method=method, percentile=99.0, threads=1)


TABLE = """net (int64[batch, sequence] input_ids, int64[batch, sequence] attention_mask)
    => (float[batch, sequence, 2] logits)
{
    [lookup] rows = Gather (table, input_ids)
    [dense] logits = MatMul (rows, weight)
}"""


def table_model(folder: Path, values: np.ndarray) -> Path:
    """A model that looks its inputs up in `values` and multiplies each with one weight."""
    model = onnx_model(TABLE, table=values.reshape(len(values), -1), weight=np.ones((1, 2)))
    save_onnx(model, folder / "table.onnx")
    return folder / "table.onnx"


def table_rows(*lists: list[int]) -> list[Arrays]:
    ids = [np.array(one, np.int64) for one in lists]
    return [{"input_ids": one, "attention_mask": np.ones_like(one)} for one in ids]


def outputs_of(model: TinyModel, names: list[str], rows: list[Arrays]) -> dict[str, list]:
    """Those tensors of the graph, of each sample alone."""
    session = open_model(with_outputs(load_onnx(model.simplified), names), threads=1)
    each = [session.run(names, {name: one[None] for name, one in row.items()}) for row in rows]
    return dict(zip(names, zip(*each, strict=True), strict=True))


def test_ranges_and_channels_are_those_of_the_values(tiny, pool: list[Arrays], told: Told) -> None:
    """Channels lie on the last axis. More samples only widen minmax."""
    ranges, channels = statistics_of(tiny.simplified, pool[:5])
    percents = told()["ranges"]
    assert percents == sorted(percents) and len(set(percents)) > 3 and percents[-1] == 100
    values = outputs_of(tiny, sorted(ranges), pool[:5])
    for name, (low, high) in ranges.items():
        flat = np.concatenate([array.ravel() for array in values[name]])
        expected = [flat.min(), flat.max()]
        assert [low, high] == pytest.approx(expected, abs=1e-4), name
    assert len(ranges) > len(channels) > 8
    for name, found in channels.items():
        width = len(found["low"])
        flat = np.concatenate([array.reshape(-1, width) for array in values[name]])
        for field, expected in zip(("low", "high", "mean"), ("min", "max", "mean"), strict=True):
            of_channels = getattr(flat, expected)(0)
            np.testing.assert_allclose(found[field], of_channels, atol=1e-4, rtol=1e-5)


def test_percentile_cuts_as_many_values_as_it_says(tmp_path: Path) -> None:
    path = table_model(tmp_path, np.linspace(-1, 3, 1000))
    ranges = statistics_of(path, table_rows(list(range(1000))), "percentile").ranges
    width = 2 * 3 / BINS  # of a bin
    assert ranges["rows"] == pytest.approx([-1 + 4 * 0.005, 3 - 4 * 0.005], abs=2 * width)


def test_the_order_changes_no_histogram(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tightrope.int8.ranges.BINS", 2 * LEVELS)
    path = table_model(tmp_path, np.random.default_rng(0).standard_normal(600) ** 3)
    one = table_rows(list(range(100)), list(range(100, 600)))
    for method in ("entropy", "percentile"):
        assert statistics_of(path, one, method) == statistics_of(path, one[::-1], method)


def test_entropy_cuts_outliers_alone(tmp_path, monkeypatch, told: Told) -> None:
    """With as many bins as levels, ONNX Runtime's default, it would be minmax."""
    assert BINS > 8 * LEVELS
    monkeypatch.setattr("tightrope.int8.ranges.BINS", 8 * LEVELS)
    bell = np.random.default_rng(0).standard_normal(20_000)
    outliers = table_model(tmp_path, np.concatenate([bell, [60.0, -60.0]]))
    low, high = statistics_of(outliers, table_rows(list(range(20_002))), "entropy").ranges["rows"]
    assert bell.max() * 0.7 < high < 20
    assert -20 < low < bell.min() * 0.7
    assert list(told()) == ["ranges", "histograms", "entropy"]
    even = table_model(tmp_path, np.linspace(-2, 2, 20_000))
    low, high = statistics_of(even, table_rows(list(range(20_000))), "entropy").ranges["rows"]
    assert high == pytest.approx(2, abs=0.15)
    assert low == pytest.approx(-2, abs=0.15)


def test_zeros_have_the_range_of_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tightrope.int8.ranges.BINS", 2 * LEVELS)
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


def test_memory_is_that_of_one_batch_whatever_the_sample_count(tiny: TinyModel) -> None:
    draw = np.random.default_rng(0)
    rows = table_rows(*draw.integers(5, 150, (480, LONGEST)).tolist())
    tensors = len(statistics_of(tiny.simplified, rows[:1]).ranges)
    activations = tensors * 16 * LONGEST * 64 * 4  # all of them of one batch, in bytes
    arguments = (tiny.simplified, rows[:48], rows, "percentile")
    assert supervised(grown_bytes, *arguments, limits=LIMITS) < 5 * activations


RANGES = {"first": [-1.0, 2.0], "second": [0.0, 3.0], "head": [-4.0, 1.0]}


def test_a_tensor_that_several_modules_read_has_the_range_of_all(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    weights = {name: draw.normal(size=(6, 4)).astype(np.float32) for name in RANGES}
    stored = {f"{name}.weight": one for name, one in weights.items()}
    checkpoint = learnt_checkpoint(tmp_path / "checkpoint", stored, ranges=RANGES)
    assert LearntRanges(checkpoint).of_weights(draw.normal(size=(6, 4))) is None
    lines = [f"[{name}] y_{name} = MatMul (x, w_{name})" for name in weights]
    lines.append(f"logits = Sum ({', '.join(f'y_{name}' for name in weights)})")
    text = f"net (float[n, 4] x) => (float[n, 6] logits) {{ {chr(10).join(lines)} }}"
    model = onnx_model(text, **{f"w_{name}": one.T for name, one in weights.items()})
    save_onnx(model, tmp_path / "model.onnx")
    assert with_learnt_ranges({}, tmp_path / "model.onnx", checkpoint) == {"x": [-4.0, 3.0]}
