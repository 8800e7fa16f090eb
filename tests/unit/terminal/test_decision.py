from pathlib import Path
from typing import Any

import msgspec
import pytest
from report_pages import example, summary_of
from tightrope.artifacts.files import file_state
from tightrope.terminal.decision import closing_words, decision_table

SHAPE = {"batch": 1, "sequence": 64}
SIZES = "1\N{MULTIPLICATION SIGN}64"


def row(ratio: float | None, verdict: str, **fields: Any) -> dict[str, Any]:
    low, high = (ratio * 0.9, ratio * 1.1) if ratio else (None, None)
    speedup = {"ratio": ratio, "low": low, "high": high, "verdict": verdict}
    seconds = 0.0081 if ratio else None
    return {"shape": SHAPE, "paired_s": seconds, "speedup": speedup, **fields}


def result(variant: str, **fields: Any) -> dict[str, Any]:
    accuracy = {"delta": -0.002, "samples": 1000, "verdict": "kept", "low": 0.88, "top1": 0.9}
    told = {"model": "m", "variant": variant, "host": "h", "status": "ok", "baseline": "base"}
    return {**told, "accuracy": accuracy, "latency": [row(3.0, "faster")], **fields}


NO_OTHER = {"code": "only", "values": {"judged": True}}


def recommendation(variant: str | None, **fields: Any) -> dict[str, Any]:
    told = {"model": "m", "host": "h", "shape": SHAPE, "variant": variant, "why": NO_OTHER}
    return {**told, "equal": [], "provisional": False, "undecided": [], **fields}


def document(recommendations: list[Any], results: list[Any]) -> dict[str, Any]:
    return {"recommendations": recommendations, "results": results}


def words(folder: Path, told: dict[str, Any]) -> list[str]:
    report, summary = folder / "summary.html", folder / "summary.json"
    summary.write_bytes(msgspec.json.encode(summary_of(told)))
    report.write_text("<html>")
    return closing_words(report, summary, before=None).splitlines()


def test_the_decision_is_a_table_with_what_speaks_for_each_variant(tmp_path: Path) -> None:
    told = document([recommendation("fast")], [result("fast")])
    assert words(tmp_path, told) == [
        "shape  variant    ms  speed-up              accuracy     verdict",
        f"{SIZES}   fast     8.10  3.00{SIZES[1]} (2.70 to 3.30)  \N{MINUS SIGN}0.2 points  faster",
        f"Report: {tmp_path / 'summary.html'}",
    ]


def test_a_padded_shape_has_a_row_of_its_own_with_its_own_numbers() -> None:
    padded = {**SHAPE, "tokens": 32}
    rows = [row(3.0, "faster"), row(2.0, "faster", paired_s=0.004, shape=padded)]
    both = [recommendation("fast", shape=shape) for shape in (SHAPE, padded)]
    table = decision_table(summary_of(document(both, [result("fast", latency=rows)])))
    _, full, other = table.splitlines()
    assert full.startswith(f"{SIZES}             fast     8.10  3.00")
    assert other.startswith(f"{SIZES}, 32 tokens  fast     4.00  2.00")


def test_nothing_is_said_where_this_run_wrote_no_report(tmp_path: Path) -> None:
    report, summary = tmp_path / "summary.html", tmp_path / "summary.json"
    assert closing_words(report, summary, before=None) == ""
    words(tmp_path, document([], []))
    assert closing_words(report, summary, before=file_state(report)) == ""


def test_failures_texts_that_were_cut_and_shapes_without_a_decision_are_told(tmp_path):
    statuses = {"a": "ok", "b": "failed", "c": "unavailable", "d": "failed"}
    results = [result(name, status=status) for name, status in statuses.items()]
    cut = {"texts": 1500, "truncated": 37, "max_sequence": 128}
    chance = {"baselines": {"cpu": "a"}, "chance": 0.55}
    models = {
        "m": {"truncation": {"evaluation": cut}, **chance},
        "n": {"truncation": {"evaluation": {**cut, "truncated": 0}}, **chance},
        "o": {"truncation": {"train": {**cut, "texts": 1, "truncated": 1}}, **chance},
    }
    # of these baselines one may be no better than chance, and b is none
    for name, variant, low in (("m", "a", 0.5), ("n", "a", 0.56), ("o", "b", 0.1)):
        one = result(variant, model=name)
        one["accuracy"] |= {"top1": 0.6, "low": low, "high": 0.7}
        results.append(one)
    none = recommendation(None, why={"code": "none_kept"})
    _, row, *lines, poor = words(tmp_path, {**document([none], results), "models": models})
    assert row.split() == [SIZES, "none", "not", "decided"]
    assert lines == [
        f"m, {SIZES}: no variant keeps the accuracy",
        "m: 37 of 1,500 evaluation texts were cut at max_sequence = 128 tokens",
        "o: 1 of 1 train text was cut at train.sequence = 128 tokens",
        f"Report: {tmp_path / 'summary.html'}",
        "2 failed, the report says why: m/b, m/d",
    ]
    assert poor.startswith("m: the baseline itself is poor: its accuracy is 60.0 % (50.0 to 70.0)")


def test_the_baseline_is_called_so() -> None:
    for baseline in (None, {"ratio": 1.0, "low": 1.0, "high": 1.0}):
        alone = result("base", latency=[{"shape": SHAPE, "paired_s": 0.02, "speedup": baseline}])
        table = decision_table(summary_of(document([recommendation("base")], [alone])))
        assert table.splitlines()[1].endswith("baseline") and "20.0" in table


@pytest.mark.parametrize("provisional", [True, False])
def test_disturbed_rows_may_make_the_decision_provisional(tmp_path, provisional: bool) -> None:
    disturbed = result("b", latency=[row(None, "disturbed", disturbed="too few quiet pairs")])
    chosen = recommendation("a", provisional=provisional, equal=["c"])
    told = document([chosen], [result("a"), disturbed]) | {
        "races": [{"status": "disturbed", "reason": "busy"}]
    }
    lines = words(tmp_path, told)
    assert lines[1].endswith("faster, equal to 1 other" + ", provisional" * provisional)
    so = ": the decision is provisional" if provisional else ""
    assert lines[-2] == f"2 measurements were disturbed by other load{so}."


def test_the_command_to_measure_again_has_the_configuration_of_the_run(tmp_path: Path) -> None:
    disturbed = result("b", latency=[row(None, "disturbed", disturbed="too few quiet pairs")])
    found = document([recommendation("a")], [result("a"), disturbed])
    for files, overrides, expected in (
        (["config/config.yaml"], [], ""),
        (["mine.yaml", "my own.yaml"], [], "--configfile mine.yaml 'my own.yaml' "),
        (["a.yaml"], ["b={c: [256]}"], "--configfile a.yaml "),
    ):
        last = words(tmp_path, {**found, "configuration": files, "overrides": overrides})[-1]
        given = "".join(f"'{one}' " for one in overrides)
        command = f": snakemake --cores 1 {expected}--config {given}remeasure=disturbed"
        assert last.endswith(command)


def test_each_model_has_its_table_and_hosts_are_named_where_there_are_several() -> None:
    one, other = recommendation("a"), recommendation("a", model="n")
    results = [result("a"), result("a", model="n")]
    table = decision_table(summary_of(document([one, other], results)))
    titles = [line for line in table.splitlines() if len(line.split()) == 1]
    assert titles == ["m", "n"]
    elsewhere = recommendation("a", host="g")
    results.append(result("a", host="g"))
    assert "m on host g\n" in decision_table(summary_of(document([one, elsewhere], results)))


def test_the_recorded_summary_has_a_row_for_each_shape_also_on_a_narrow_terminal() -> None:
    told = summary_of(example())
    rows = [line for line in decision_table(told).splitlines() if line[:1].isdigit()]
    for line, one in zip(rows, told.recommendations, strict=True):
        assert (one.variant or "none") in line
    table = decision_table(told, width=80)
    assert all(len(line) <= 80 for line in table.splitlines())
    # intervals break and names stay whole
    assert all(f" {one.variant} " in table for one in told.recommendations)


def test_the_goal_is_said_in_one_line_and_once_where_nothing_meets_it(tmp_path: Path) -> None:
    told = document([recommendation("small")], [result("small")])
    sentence = "For the least memory at batch 1, sequence 64: small, 300 MB"
    goal = {"model": "m", "host": "h", "shape": SHAPE, "variant": "small", "value": 300.0}
    told |= {"goal": {"minimize": "memory"}}
    for provisional, end in ((False, ""), (True, " (provisional)")):
        _, _, line, _ = words(
            tmp_path, {**told, "goals": [{**goal, "unit": "MB", "provisional": provisional}]}
        )
        assert line == f"m: {sentence}{end}"
    none = recommendation(None, why={"code": "goal"})
    unmet = {"goals": [{**goal, "variant": None}], "recommendations": [none]}
    lines = words(tmp_path, {**told, **unmet})
    assert sum("sequence 64: no variant qualifies" in line for line in lines) == 1
