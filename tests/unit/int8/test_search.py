from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from artifact_files import written
from splits import split_of
from tightrope.artifacts.files import read_json
from tightrope.errors import TightropeError
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.int8.cache import read_cache, write_cache
from tightrope.int8.quantize import quantize_onnx
from tightrope.int8.search import (
    SearchInputs,
    SearchSettings,
    ranked,
    search,
    search_operators,
)
from tightrope.int8.switched_model import SwitchedModel
from tightrope.int8.trials import TrialEvaluator, TrialStore
from tightrope.statistics import paired_difference
from tiny_model import LONGEST, TinyModel


class Arithmetic:
    """A judge by arithmetic: operators cost what `costs` says, and the sum may be `budget`."""

    def __init__(self, costs: dict[str, float], budget: float, seconds: float = 0.0) -> None:
        self.costs, self.budget, self.each = costs, budget, seconds
        self.tried: list[set[str]] = []

    @property
    def seconds(self) -> float:
        return self.each * len(self.tried)

    def has_time(self, seconds: float) -> bool:
        return self.seconds + self.each <= seconds

    def holds(self, in_float) -> bool:
        self.tried.append(set(in_float))
        return sum(cost for name, cost in self.costs.items() if name not in in_float) <= self.budget


COSTS = {"a": 8.0, "b": 4.0, "c": 2.0, "d": 1.0, "e": 0.5}


@pytest.mark.parametrize(
    ("budget", "chosen"),
    [(16, []), (8, ["a"]), (7.5, ["a"]), (3.6, ["a", "b"]), (0.2, ["a", "b", "c", "d", "e"])],
)
def test_the_shortest_beginning_of_the_ranking_that_holds(budget: float, chosen: list) -> None:
    judge = Arithmetic(COSTS, budget)
    assert search(judge, list(COSTS), seconds=10) == (chosen, "minimum")


def test_one_that_did_not_help_goes_back_to_int8() -> None:
    """The ranking put b first, and c alone is to blame."""
    judge = Arithmetic({"b": 0.1, "c": 9.0, "d": 0.1}, 1.0)
    assert search(judge, ["b", "c", "d"], seconds=10) == (["c"], "minimum")


def test_where_all_in_int8_holds_nothing_else_is_tried() -> None:
    judge = Arithmetic(COSTS, 100)
    search(judge, list(COSTS), seconds=10)
    assert judge.tried == [set()]


def test_at_the_time_limit_the_last_choice_that_held_stands() -> None:
    judge = Arithmetic(COSTS, 3.6, seconds=1.0)
    assert search(judge, list(COSTS), seconds=0.5) == (sorted(COSTS), "time limit")
    assert len(judge.tried) == 1
    judge = Arithmetic(COSTS, 3.6, seconds=1.0)
    chosen, stop = search(judge, list(COSTS), seconds=2.5)
    assert stop == "time limit"
    assert set(chosen) >= {"a", "b"}


def test_no_trial_is_begun_that_would_end_after_the_limit(tmp_path: Path) -> None:
    trial = {"in_float": [], "delta": 0.0, "delta_low": 0.0, "delta_high": 0.0, "flips": 0}
    trials = [{**trial, "verdict": "kept", "seconds": seconds} for seconds in (2.0, 5.0)]
    written(tmp_path / "state.json", {"key": "k", "trials": trials})
    store = TrialStore(tmp_path / "state.json", "k")
    judge = TrialEvaluator(SwitchedModel, [], None, 0.01, store, seconds=60)
    assert (judge.seconds, judge.has_time(12.0), judge.has_time(11.9)) == (7.0, True, False)


def test_the_ranking_is_by_divergence_for_the_time_saved() -> None:
    row = {"batch": 2, "sequence": 10}
    costs = {
        "slow": [{**row, "float_s": 0.003, "int8_s": 0.001}],  # 0.1 ms a row saved
        "quick": [{**row, "float_s": 0.0014, "int8_s": 0.001}],
        "useless": [{**row, "float_s": 0.001, "int8_s": 0.002}],
    }
    found = ranked({name: {"kl": 0.5} for name in costs}, costs)
    assert [name for name, _ in found] == ["useless", "quick", "slow"]
    assert dict(found)["slow"] == pytest.approx(0.5 / 0.1)
    assert dict(found)["quick"] == pytest.approx(0.5 / 0.02)


@pytest.fixture(scope="module")
def evidence(tiny: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Sensitivity and costs of the tiny model, the classifier the most sensitive."""
    folder = tmp_path_factory.mktemp("evidence")
    names = SwitchedModel(tiny.simplified, tiny.u8s8, threads=1).operators
    kl = {name: {"kl": 1.0 if name == "classifier" else 0.1} for name in names}
    row = {"batch": 1, "sequence": 8, "float_s": 0.002, "int8_s": 0.001}
    written(folder / "sensitivity.json", {"operators": kl})
    written(folder / "costs.json", {"operators": {name: [row] for name in names}})
    return folder / "sensitivity.json", folder / "costs.json"


def searched(tiny: TinyModel, evidence: tuple[Path, Path], folder: Path, budget: float) -> dict:
    inputs = SearchInputs(
        onnx=tiny.simplified,
        quantized=tiny.u8s8,
        calibration=tiny.minmax,
        sensitivity=evidence[0],
        costs=evidence[1],
        data=tiny.split("calibration"),
        checkpoint=tiny.checkpoint,
    )
    settings = SearchSettings(
        code="of these tests",
        smoothquant=0.8,
        state=folder / "work/state.json",
        budget_points=budget,
        seconds=60,
        max_sequence=LONGEST,
        threads=1,
        libraries={},
    )
    search_operators(inputs, folder / "search.json", "u8s8", settings)
    return read_json(folder / "search.json")


def test_a_search_judges_the_whole_pool_and_keeps_every_trial(
    tiny: TinyModel, evidence: tuple[Path, Path], tmp_path: Path
) -> None:
    found = searched(tiny, evidence, tmp_path, budget=20)
    assert (found["samples"], found["in_float"], found["stop"]) == (40, [], "minimum")
    assert [trial["in_float"] for trial in found["trials"]] == [[]]
    assert found["smoothquant"] == 0.8
    examples = read_split(split_of(tiny.data, "calibration"))
    rows = load_encoder(tiny.checkpoint, max_sequence=LONGEST)(examples)
    smooth = tmp_path / "smooth.onnx"
    paths = (tiny.simplified, tiny.minmax, smooth)
    quantize_onnx(*paths, scheme="u8s8", repair={"smoothquant": 0.8})
    model = SwitchedModel(tiny.simplified, smooth, threads=1)
    ours, theirs = (model.answers(rows, who).argmax(1) for who in (model.operators, ()))
    labels = np.array([example["label"] for example in examples])
    gained, lost = ((ours == labels) > (theirs == labels)), ((ours == labels) < (theirs == labels))
    change = paired_difference(int(gained.sum()), int(lost.sum()), 40)
    trial = found["trials"][0]
    assert (trial["delta"], trial["delta_low"]) == (change.value, change.low)
    assert trial["flips"] == (ours != theirs).sum()
    assert found["ranking"][0]["operator"] == "classifier"


def test_a_search_goes_on_from_where_it_was_interrupted(
    tiny: TinyModel, evidence: tuple[Path, Path], tmp_path: Path
) -> None:
    searched(tiny, evidence, tmp_path, budget=20)
    state = tmp_path / "work/state.json"
    document = read_json(state)
    marked = {**document["trials"][0], "seconds": 0.125}
    written(state, {**document, "trials": [marked]})
    found = searched(tiny, evidence, tmp_path, budget=20)
    assert found["trials"][0] == marked
    assert len(found["trials"]) == 1
    written(state, {**document, "key": "of another search"})
    assert searched(tiny, evidence, tmp_path, budget=20)["trials"][0]["seconds"] != 0.125


def test_a_pool_that_cannot_tell_is_an_error(
    tiny: TinyModel, evidence: tuple[Path, Path], tmp_path: Path
) -> None:
    words = r"calibration\.json: 40 calibration examples are too few to tell a loss of 1 points: "
    with pytest.raises(TightropeError, match=words):
        searched(tiny, evidence, tmp_path, budget=1)
    assert not (tmp_path / "search.json").exists()


def test_a_cache_without_channels_is_searched_without_smoothquant(
    tiny: TinyModel, evidence: tuple[Path, Path], tmp_path: Path
) -> None:
    cache = read_cache(tiny.minmax, model=tiny.simplified)
    write_cache(tmp_path / "imported.json", **{**cache, "channels": {}})
    found = searched(tiny._replace(minmax=tmp_path / "imported.json"), evidence, tmp_path, 20)
    assert found["smoothquant"] is None


def test_a_broken_calibration_is_mended_by_leaving_operators_in_float(
    tiny: TinyModel, evidence: tuple[Path, Path], tmp_path: Path
) -> None:
    quantized = tmp_path / "coarse.onnx"
    cache = read_cache(tiny.minmax, model=tiny.simplified)
    cut = {name: [value / 50 for value in pair] for name, pair in cache["ranges"].items()}
    write_cache(tmp_path / "coarse.json", **{**cache, "ranges": cut, "channels": {}})
    quantize_onnx(tiny.simplified, tmp_path / "coarse.json", quantized, scheme="u8s8")
    coarse = tiny._replace(u8s8=quantized, minmax=tmp_path / "coarse.json")
    found = searched(coarse, evidence, tmp_path, budget=20)
    assert found["trials"][0]["verdict"] != "kept"
    held = [one for one in found["trials"] if one["verdict"] == "kept"]
    assert held[-1]["in_float"] == found["in_float"]
    assert 0 < len(found["in_float"]) < 14


def test_the_first_trial_tells_its_samples_and_the_others_the_seconds_of_all(
    tiny: TinyModel, tmp_path: Path, told: Callable[[], dict[str, list[int]]]
) -> None:
    examples = read_split(tiny.split("calibration"))
    rows = load_encoder(tiny.checkpoint, max_sequence=LONGEST)(examples)
    model = SwitchedModel(tiny.simplified, tiny.u8s8, threads=1)
    store = TrialStore(tmp_path / "state.json", "k")
    judge = TrialEvaluator(model, rows, None, 0.5, store, seconds=60)
    judge.holds(())
    assert told() == {"first trial": [0, 40, 50, 90, 99, 100]}
    store.write([{**judge.trials[0], "seconds": 30.0}])
    again = TrialEvaluator(model, rows, None, 0.5, store, seconds=60)
    again.holds(["classifier"])
    percents = told()["search"]
    assert percents[0] == 50
    assert percents[-1] == 100
    assert len(percents) == 6
