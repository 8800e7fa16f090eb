import json
from typing import Any

import altair as alt
import pytest
from msgspec import to_builtins
from raced import HOST
from report_pages import example, page, summary_of
from tightrope.decide.result import NO_SPEEDUP
from tightrope.records.training import Epoch, SeedRun, TrainingRecord
from tightrope.report.charts import place_names, training_chart
from tightrope.report.page import sections
from tightrope.report.sections.training import training_section
from tightrope.summary.pairs import training_entries
from tightrope.training.recipe import whole_recipe


def run(seed: int, seconds: list[float], accuracy: float, **facts: Any) -> SeedRun:
    known = {"samples": 90, "steps": 3, "loss": 0.5, "accuracy_s": 0.1, "foreign_cores": 0.0}
    epochs = [Epoch(seconds=one, accuracy=accuracy, **known) for one in seconds]
    sizes = {"amp": "off", "steps": 9, "samples": 90, "held_out_samples": 10, "micro_batches": 1}
    peak = {"tf32": False, "peak_rss_bytes": 10**9 + seed}
    return SeedRun(seed=seed, **sizes, **peak, epochs=epochs, **facts)


def record(model: str, runs: list[SeedRun], **facts: Any) -> TrainingRecord:
    recipe = whole_recipe({"amp": "off", **facts.pop("recipe", {})}, 0)
    plan = {"epochs": 3, "seeds": [one.seed for one in runs] or [0]}
    facts = {"unit": "images", "source_sha256": "s", "data_sha256": "d", **facts}
    kept = {"host": HOST, "libraries": {}, "device": "cpu", "threads": 2}
    return TrainingRecord(model=model, recipe=recipe, plan=plan, runs=runs, **kept, **facts)


def plain(count: int = 3) -> TrainingRecord:
    times = [[9.0, 4.0, 4.2], [9.0, 4.1, 3.9], [8.0, 3.9, 4.0]][:count]
    return record("plain", [run(n, own, 0.5 + n / 10) for n, own in enumerate(times)])


def compiled(count: int = 3, **facts: Any) -> TrainingRecord:
    times = [[30.0, 2.0, 2.0 + n / 100] for n in range(count)]
    runs = [run(n, own, 0.6 + n / 10, compile_s=20.0) for n, own in enumerate(times)]
    return record("compiled", runs, recipe={"compile": True}, **facts)


def test_the_plain_training_is_what_others_are_compared_with() -> None:
    first, second = training_entries([compiled(), plain()])
    assert (first.reference, second.reference) == ("plain", "plain")
    assert (second.speedup, second.accuracy_change) == (None, None)
    assert second.epoch_s.mean == pytest.approx((4.1 + 4.0 + 3.95) / 3)
    assert first.speedup.ratio == pytest.approx(2.0, rel=0.02)
    assert 1 < first.speedup.low < first.speedup.ratio < first.speedup.high
    assert first.speedup.verdict == "faster"
    assert first.accuracy_change.mean == pytest.approx(0.1)
    assert first.accuracy_change.spread == pytest.approx(0.0, abs=1e-9)
    assert (first.first_epoch_s.mean, first.compile_s.mean) == (30.0, 20.0)
    assert (second.compile_s, first.peak_rss_bytes) == (None, 10**9 + 2)
    json.dumps(to_builtins([first, second]), allow_nan=False)
    # one seed has a ratio without an interval
    entry, _ = training_entries([compiled(1), plain(1)])
    assert entry.speedup.ratio == pytest.approx(4.1 / 2.0)
    assert (entry.speedup.low, entry.speedup.verdict) == (None, "tie")
    assert entry.epoch_s.spread is None


OTHERS = {"data_sha256": "d", "source_sha256": "x", "activation": "relu"}


def test_what_differs_in_more_is_not_compared() -> None:
    runs = [run(n, [3.0, 2.0, 2.0], 0.5) for n in range(3)]
    others = [{name: value + "2"} for name, value in OTHERS.items()]
    for facts in ({"recipe": {"compile": True, "batch": 8}}, *others):
        _, entry = training_entries([plain(), record("other", runs, **facts)])
        assert entry.reference != "plain" and entry.speedup is None, facts


def test_a_failed_training_is_told_and_compared_with_nothing() -> None:
    failed = record("failed", [], status="failed", reason="no memory", recipe={"compile": True})
    broken = record("plain", plain().runs, status="failed", reason="killed")
    for entry in training_entries([failed, broken, compiled()]):
        assert (entry.speedup, entry.reference) == (None, None)
    (entry, *_) = training_entries([failed, plain()])
    assert (entry.epoch_s, entry.reason) == (None, "no memory")
    # auto that came to off is plain too
    auto = record("auto", plain().runs, recipe={"amp": "auto"})
    assert training_entries([auto])[0].reference == "auto"


def disturb(made: TrainingRecord, seed: int, *epochs: int) -> TrainingRecord:
    """Other programs ran in these epochs of the seed."""
    for epoch in epochs:
        made.runs[seed].epochs[epoch].foreign_cores = 0.7
    return made


@pytest.mark.parametrize("which", [0, 1])
def test_without_an_undisturbed_epoch_of_each_seed_there_are_no_times(which: int) -> None:
    (entry,) = training_entries([disturb(plain(), 1, 0, 1)])
    assert (entry.disturbed, entry.provisional) == (None, False)
    assert entry.epoch_s.mean == pytest.approx((4.1 + 3.9 + 3.95) / 3)
    # nor do disturbed epochs count where they need not
    assert training_entries([disturb(plain(), 1, 0, 1)], accept_disturbed=True) == [entry]
    records = [plain(), compiled()]
    disturb(records[which], 2, 1, 2)
    records[which].busiest = {"python3 other.py": 0.9}
    entries = training_entries(records)
    for name in ("epoch_s", "first_epoch_s", "samples_per_s"):
        assert getattr(entries[which], name) is None
        assert getattr(entries[1 - which], name).mean > 0
    assert "in every epoch of a seed; the busiest: python3 other.py" in entries[which].disturbed
    assert entries[1].speedup == NO_SPEEDUP
    assert entries[1].accuracy_change.mean == pytest.approx(0.1)
    given = training_entries(records, accept_disturbed=True)
    assert [one.provisional for one in given] == [n == which for n in (0, 1)]
    assert given[1].speedup.verdict == "faster"
    assert given[0].epoch_s.mean == pytest.approx((4.1 + 4.0 + 3.95) / 3)


def test_the_table_begins_with_the_plain_training_and_a_disturbed_one_draws_no_line() -> None:
    failed = record("failed", [], status="failed", reason="no memory <here>")
    entries = training_entries([disturb(compiled(), 0, 1, 2), plain(), failed])
    (table,) = training_section(entries)
    assert [entry.model for entry in table["entries"]] == ["plain", "compiled"]
    assert not table["device_memory"]
    assert training_section([]) == sections(summary_of(example()))["training"] == []
    assert {point["model"] for point in table["figure"]["points"]} == {"plain"}
    found = page(training=entries)
    text = found.text
    assert "90 images with each of 3 seeds, on the CPU with 2 threads" in text
    assert "60 ± 10" in text and "+10 ± 0" in text and "1 failed training" in text
    assert "no memory &lt;here&gt;" in found.html
    assert "Other load disturbed 1 training." in text
    assert "Provisional:" not in text, "the decision does not rest on it"
    words = text[text.index("90 images with each of") : text.index("Accuracy over the time")]
    assert "disturbed other programs or the hypervisor used up to 0.7 cores" in words
    assert "None" not in words and "nan" not in words
    both = training_entries([disturb(plain(), 0, 1, 2), disturb(compiled(), 0, 1, 2)])
    (table,) = training_section(both)
    assert table["figure"] is None


def ended(model: str, seconds: float, accuracy: float, *, last: bool = True) -> dict:
    told = {"epoch": 1, "low": accuracy - 1, "high": accuracy + 1, "told": "x", "last": last}
    return {"model": model, "seconds": seconds, "accuracy": accuracy, **told}


@pytest.mark.parametrize(
    ("points", "line", "heights"),
    [
        ((("a", 97.0, 17.2), ("b", 98.0, 17.3), ("c", 99.0, 25.0)), 0.8, [17.2, 18.0, 25.0]),
        # one that is moved moves the next
        ((("a", 90.0, 1.0), ("b", 90.0, 1.1), ("c", 90.0, 2.2)), 1.0, [1.0, 2.0, 3.0]),
        # names far from each other stand at their points
        ((("a", 12.0, 17.3), ("b", 97.0, 17.2)), 0.8, [17.3, 17.2]),
    ],
)
def test_names_of_trainings_that_end_together_are_a_line_apart(points, line, heights):
    placed = [*(ended(*one) for one in points), ended("b", 50.0, 17.2, last=False)]
    found = {one["model"]: one["name_at"] for one in place_names(placed, line=line)}
    assert found == pytest.approx(dict(zip("abc", heights, strict=False)))


def test_a_long_name_has_more_room_beside_the_slowest_training() -> None:
    def room(name: str) -> float:
        chart = training_chart([ended(name, 10.0, 50.0)], description="d")
        alt.Chart.from_dict(chart)  # raises where it is no specification of Vega-Lite
        return chart["layer"][0]["encoding"]["x"]["scale"]["domain"][1]

    assert 10 < room("amp") < room("compiled-amp") < room(80 * "n") < 20
