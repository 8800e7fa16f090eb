from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from quantized_files import answers, quantized
from tightrope.artifacts.files import read_json
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays, stack
from tightrope.int8 import search
from tightrope.int8.calibrate import read_cache, write_cache
from tightrope.int8.quantize import found_by_search, in_qdq
from tightrope.int8.schemes import SCHEMES
from tightrope.int8.search import (
    Judge,
    Search,
    SwitchedModel,
    beginnings,
    search_operators,
    sensitivities,
)
from tightrope.logit_distance import mean_divergence, relative_error
from tightrope.onnx.edit import copy_of, weighted_nodes
from tightrope.onnx.file import load_onnx, save_onnx
from tightrope.statistics import paired_difference
from tiny_convolutions import make_convolutions, pictures, ranges_of
from tiny_model import LONGEST, TinyModel, evaluation_rows

NAME = "bert.encoder.layer.0.output.dense"
Rows = list[dict[str, np.ndarray]]


def searched(tiny: TinyModel, folder: Path, budget: float = 20) -> dict[str, Any]:
    files = {"onnx": tiny.simplified, "quantized": tiny.u8s8, "calibration": tiny.minmax}
    search = Search(
        **{**files, "data": tiny.split("calibration"), "checkpoint": tiny.checkpoint},
        **{"scheme": "u8s8", "smoothquant": 0.8, "budget_points": budget},
        **{"sensitivity_samples": 16, "max_sequence": LONGEST, "threads": 1, "libraries": {}},
    )
    search_operators(search, folder / "search.json")
    found: dict[str, Any] = read_json(folder / "search.json")
    return found


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Callable[[Sequence[bool]], None]:
    """Sets whether the budget is kept in each trial, instead of by its answers."""

    def set_kept(verdicts: Sequence[bool]) -> None:
        told = iter(verdicts)
        words = {True: "kept", False: "undecided"}
        monkeypatch.setattr(search, "accuracy_verdict", lambda change, budget: words[next(told)])
        monkeypatch.setattr(search, "require_enough", lambda *_: None)

    return set_kept


def tried(found: dict[str, Any]) -> list[tuple[float | None, list[str]]]:
    return [(one["smoothquant"], one["in_float"]) for one in found["trials"]]


def test_plain_int8_is_taken_where_it_suffices(tiny: TinyModel, tmp_path: Path, pool: Rows) -> None:
    found = searched(tiny, tmp_path)
    assert (found["smoothquant"], found["in_float"], found["operators"]) == (None, [], 14)
    assert (found["sensitivity"], found["samples"]) == (None, len(pool)) == (None, 40)
    repair = found_by_search(tmp_path / "search.json")
    quantized(tiny, tmp_path / "a.onnx", **repair)
    assert (tmp_path / "a.onnx").read_bytes() == tiny.u8s8.read_bytes()
    (trial,) = found["trials"]
    assert (trial["smoothquant"], trial["in_float"], trial["verdict"]) == (None, [], "kept")


def test_smoothquant_comes_after_plain_int8_and_may_end_it(tiny, tmp_path, kept) -> None:
    kept([False, True])
    found = searched(tiny, tmp_path)
    assert tried(found) == [(None, []), (0.8, [])]
    assert (found["smoothquant"], found["in_float"], found["sensitivity"]) == (0.8, [], None)


def test_then_the_most_sensitive_operators_stay_in_float(tiny, tmp_path, kept, pool, told) -> None:
    kept([False, False, False, False, True])
    found = searched(tiny, tmp_path)
    percents = told()
    # the first one runs the model in float too
    assert percents["trial 1"] == [0, 40, 50, 90, 99, 100]
    assert percents["trial 2"] == [0, 80, 99, 100]
    # each sample of each operator
    steps = percents["sensitivity"]
    assert (steps == sorted(steps), len(set(steps)) > 90, steps[-1]) == (True, True, 100)
    quantized(tiny, tmp_path / "smooth.onnx", smoothquant=0.8)
    model = SwitchedModel(tiny.simplified, tmp_path / "smooth.onnx", threads=1)
    effects = sensitivities(model, pool[:16])
    assert found["sensitivity"] == {"samples": 16, "operators": effects}
    order = sorted(effects, key=lambda name: -effects[name]["kl"])
    assert tried(found) == [(None, []), *((0.8, sorted(order[:count])) for count in (0, 1, 2, 4))]
    assert (found["smoothquant"], found["in_float"]) == (0.8, sorted(order[:4]))


def test_where_no_choice_keeps_the_budget_all_operators_stay_in_float(tiny, tmp_path, kept) -> None:
    """Beginnings of the order are twice as long each time, and never the whole."""
    kept([False] * 6)
    found = searched(tiny, tmp_path)
    assert len(found["in_float"]) == found["operators"] == 14
    assert [len(one["in_float"]) for one in found["trials"]] == [0, 0, 1, 2, 4, 8]
    assert [len(one) for one in beginnings(list("abcdefgh"))] == [1, 2, 4]


def test_a_pool_that_cannot_tell_is_an_error(tiny: TinyModel, tmp_path: Path) -> None:
    words = r"calibration\.json: 40 calibration examples are too few to tell a loss of 1 points: "
    with pytest.raises(TightropeError, match=words):
        searched(tiny, tmp_path, budget=1)
    assert not (tmp_path / "search.json").exists()


def test_operators_in_float_mend_bad_ranges(tiny: TinyModel, tmp_path: Path, pool: Rows) -> None:
    """By ranges that are fifty times too narrow."""
    cache = read_cache(tiny.minmax, model=tiny.simplified)
    cut = {name: [value / 50 for value in pair] for name, pair in cache["ranges"].items()}
    coarse = tiny._replace(u8s8=tmp_path / "coarse.onnx", minmax=tmp_path / "coarse.json")
    write_cache(coarse.minmax, **{**cache, "ranges": cut, "channels": {}})
    quantized(coarse, coarse.u8s8)
    found = searched(coarse, tmp_path)
    assert {strength for strength, _ in tried(found)} == {None} == {found["smoothquant"]}
    assert [one["verdict"] == "kept" for one in found["trials"]].index(True) > 0
    assert found["trials"][-1]["in_float"] == found["in_float"]
    assert 0 < len(found["in_float"]) < 14
    # a trial is judged by the labels against the model in float
    judge = Judge(pool, [1] * 40, 0.5)
    model = SwitchedModel(tiny.simplified, coarse.u8s8, threads=1)
    judge.holds(model, None, ())
    ours, theirs = (model.answers(pool, who).argmax(1) for who in (model.operators, ()))
    gained, lost = ((ours == 1) > (theirs == 1)).sum(), ((ours == 1) < (theirs == 1)).sum()
    change = paired_difference(int(gained), int(lost), 40)
    (trial,) = judge.trials
    assert gained + lost < trial["flips"] == (ours != theirs).sum()
    assert (trial["delta"], trial["delta_low"]) == (change.value, change.low)


def test_an_effect_is_that_of_one_operator(tiny: TinyModel, tmp_path: Path, pool: Rows) -> None:
    effects = sensitivities(SwitchedModel(tiny.simplified, tiny.u8s8, threads=1), pool[:16])
    assert set(effects) == {node.name for node in weighted_nodes(load_onnx(tiny.simplified))}
    others = [name for name in effects if name != NAME]
    alone = quantized(tiny, tmp_path / "a.onnx", float=others)
    found, expected = (
        answers(model, [stack(pool[:16])]).tolist() for model in (alone, tiny.simplified)
    )
    fields = effects[NAME]
    assert fields["logit_error"] == pytest.approx(relative_error(found, expected), rel=0.1)
    assert fields["kl"] == pytest.approx(mean_divergence(expected, found), rel=0.5, abs=1e-9)
    assert fields["agreement"] == np.mean(np.argmax(found, 1) == np.argmax(expected, 1))
    assert 15 < fields["sqnr_db"] < 60


@pytest.fixture(scope="module")
def batch(tiny: TinyModel) -> list[Arrays]:
    return evaluation_rows(tiny)[:20]


def logits_of(model: Any, rows: list[Arrays]) -> np.ndarray:
    return answers(model, [stack(rows)])


def require_same(found: np.ndarray, expected: np.ndarray, floats: np.ndarray) -> None:
    """But for few values at the edge of a step, which may round the other way."""
    assert np.abs(found - expected).mean() < 0.1 * np.abs(expected - floats).mean()


@pytest.mark.parametrize(
    ("name", "repair"),
    [
        ("bert.encoder.layer.0.output.dense", {}),
        ("classifier", {}),
        # query, key and value read one tensor: its factors are those of all three
        ("bert.encoder.layer.0.attention.self.query", {"smoothquant": 0.8}),
    ],
    ids=str,
)
def test_one_operator_in_float_is_the_file_with_it_left_out(tiny, batch, tmp_path, name, repair):
    quantized(tiny, tmp_path / "a.onnx", **repair)
    model = SwitchedModel(tiny.simplified, tmp_path / "a.onnx", threads=1)
    floats = logits_of(tiny.simplified, batch)
    np.testing.assert_allclose(model.answers(batch, ()), floats, atol=2e-4)
    built = logits_of(quantized(tiny, tmp_path / "b.onnx", **repair, float=[name]), batch)
    found = model.answers(batch, set(model.operators) - {name})
    require_same(found, built, floats)
    assert np.abs(found - model.answers(batch, model.operators)).max() > 0


@pytest.mark.parametrize("in_float", [(), ("stem", "half", "deep"), ("depthwise",)], ids=str)
def test_convolutions_switch_with_what_they_give(tmp_path: Path, in_float: tuple[str, ...]) -> None:
    """ONNX Runtime's convolutions in int8 give rounded values: in float they give exact ones."""
    floats = make_convolutions()
    ranges = ranges_of(floats, pictures(16, seed=1))
    names = [node.name for node in weighted_nodes(floats)]
    save_onnx(floats, tmp_path / "float.onnx")
    for file, chosen in (("whole", names), ("part", [one for one in names if one not in in_float])):
        made = in_qdq(copy_of(floats), ranges, chosen, SCHEMES["u8s8"], {})
        save_onnx(made, tmp_path / f"{file}.onnx")
    model = SwitchedModel(tmp_path / "float.onnx", tmp_path / "whole.onnx", threads=1)
    rows = [{"pixel_values": one} for one in pictures(20, seed=2)]
    found = model.answers(rows, set(model.operators) - set(in_float))
    expected = logits_of(tmp_path / "part.onnx", rows)
    require_same(found, expected, logits_of(tmp_path / "float.onnx", rows))
