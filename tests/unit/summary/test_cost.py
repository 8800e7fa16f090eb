"""Cost and break-even, recomputed by hand, and how long the jobs before a build took."""

import math
from pathlib import Path
from typing import Any

import pytest
from goals import BASELINE, BATCH, INT8, result, row
from manifests import ENGINE
from raced import PLACE
from tightrope.artifacts.manifest import clear_folder, write_manifest
from tightrope.decide.bounds import costs, price_of
from tightrope.decide.result import Search
from tightrope.summary.runs import prepare_seconds


def entry(variant: str, *rows: Any, price: Any, prepared: Any = 0.0, **fields: Any) -> Any:
    """The cost at the first of the rows, of a variant that was prepared in so many seconds."""
    prices = {} if price is None else {"*": price}
    return costs([result(variant, *rows, **fields)], prices, {("m", variant): prepared})[0]


def test_cost_and_break_even_are_what_they_are_by_hand() -> None:
    """16 inputs in 32 ms, 2.5 times as fast as the baseline, built in 60 s and searched in 40 s.

    An inference takes 2 ms and the baseline's 5 ms: 3 ms are saved, so 100 s are saved after
    33,333 inferences. An hour for 0.18 is 0.00005 per second: a million inferences take 2,000 s
    and cost 0.10. At the low end of the speed-up, 2.5 / 1.1, an inference takes 2.2 ms.
    """
    search = Search([], None, 64, 1.0, seconds=40.0, operators=9, trials=[])
    found = entry(INT8, row(32.0, 2.5, shape=BATCH), price=0.18, build_s=60.0, search=search)
    assert found.inferences_per_s == pytest.approx(500.0)
    assert found.cost_per_million == pytest.approx(0.10)
    assert found.saved_s == pytest.approx(0.003)
    assert found.break_even_inferences == pytest.approx(100 / 0.003)
    assert found.break_even_at_most == pytest.approx(100 / 0.0028)
    # calibrating and quantizing are paid as the build is: 60 s and 30 s before it
    found = entry(INT8, row(32.0, 2.5, shape=BATCH), price=None, prepared=30.0)
    assert (found.prepare_s, found.build_s, found.spent_s) == (30.0, 60.0, 90.0)
    assert found.break_even_inferences == pytest.approx(90 / 0.003)
    assert (found.price_per_hour, found.cost_per_million) == (None, None)
    unknown = entry(INT8, row(32.0, 2.5, shape=BATCH), price=None, prepared=None)
    assert unknown.prepare_s is unknown.spent_s is unknown.break_even_inferences is None
    assert unknown.saved_s == pytest.approx(0.003)


def test_the_baseline_and_what_is_slower_never_break_even() -> None:
    for found in (entry(BASELINE, row(10.0), price=1.0), entry(INT8, row(10.0, 0.8), price=1.0)):
        assert found.break_even_inferences is found.break_even_at_most is None
    maybe = entry(INT8, row(10.0, 1.05), price=1.0)
    assert maybe.break_even_inferences == pytest.approx(60 / 0.0005)
    assert maybe.break_even_at_most is None
    disturbed = entry(INT8, row(None), price=1.0)
    assert (disturbed.cost_per_million, disturbed.break_even_inferences) == (None, None)
    # the price is that of the host, or of any
    prices = {PLACE: 2.0, "*": 1.0}
    assert (price_of(PLACE, prices), price_of("0" * 12, prices)) == (2.0, 1.0)
    assert (price_of("0" * 12, {PLACE: 2.0}), price_of(None, prices)) == (None, None)


def made(path: Path, seconds: float) -> str:
    """The benchmark of a job that took so long, as Snakemake writes it."""
    path.write_text(f"s\th:m:s\tmax_rss\n{seconds}\t0:00:12\t-\n")
    return str(path)


def test_the_seconds_of_all_jobs_before_a_build_are_added(tmp_path: Path) -> None:
    engine = tmp_path / "engine/engine.json"
    clear_folder(engine)
    write_manifest(engine, **{**ENGINE, "status": "ok", "build_s": 4.0})
    files = [made(tmp_path / "minmax-64.tsv", 12.5), made(tmp_path / "u8s8.tsv", 1.5), str(engine)]
    found = prepare_seconds({"m": {"float": [], "int8": [0, 1], "mixed": [0, 1, 2]}}, files)
    assert found == {("m", "float"): 0.0, ("m", "int8"): 14.0, ("m", "mixed"): 18.0}
    # with a job whose time was not kept the sum is not known
    files[1] = made(tmp_path / "u8s8.tsv", math.nan)
    assert prepare_seconds({"m": {"int8": [0, 1]}}, files) == {("m", "int8"): None}
