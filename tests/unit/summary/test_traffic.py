from dataclasses import asdict
from typing import Any

import pytest
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.records.traffic import TrafficRecord
from tightrope.summary.traffic import TIE, traffic_entry

PADDINGS = ("fixed", "longest", "bucketed")
PLAN = {
    "scenarios": ["single_stream", "offline", "server"],
    "padding": list(PADDINGS),
    "batch": 8,
    "buckets": 2,
    "seconds": 1,
    "p99_bound_s": 0.1,
}
# of the paddings: samples a second, tokens that padding added to 600 of samples
OFFLINE = {"fixed": (50.0, 600), "longest": (60.0, 200), "bucketed": (75.0, 150)}
QUIET = {"foreign_cores": MAX_FOREIGN_CORES}
ANSWERS = {
    "fixed": {"predictions": [0, 1, 2, 0], "margins": [3.0, TIE, 1.01 * TIE, 0.0]},
    "longest": {"predictions": [0, 2, 2, 0], "margins": [3.0, 0.5, 1.0, 0.0]},
    "bucketed": {"predictions": [0, 0, 1, 1], "margins": [3.0, 9.0, 9.0, 9.0]},
}
EMPTY = {
    "disturbed": None,
    "provisional": False,
    "samples_per_s": None,
    "single_stream_p90_s": None,
    "server_per_s": None,
    "server_reason": None,
    "padding_share": None,
    "gain": None,
    "changed": None,
    "ties_changed": None,
}


def measured_with(padding: str) -> list[dict[str, Any]]:
    rate, padded = OFFLINE[padding]
    latencies = {"p50_s": 0.01, "p90_s": 0.02, "p99_s": 0.05, "queries": 64}
    server = {"rates": [], "highest_per_s": 40.0, "issued_per_s": 39.5, "reason": None}
    offline = {
        "batches": 13,
        "samples": 100,
        "samples_per_s": rate,
        "tokens": 600,
        "padded_tokens": padded,
    }
    return [
        {"padding": padding, "scenario": "single_stream", "valid": True, **latencies, **QUIET},
        {"padding": padding, "scenario": "offline", "valid": True, **offline, **QUIET},
        {"padding": padding, "scenario": "server", **server},
    ]


def record(**fields: Any) -> TrafficRecord:
    facts = {
        "plan": PLAN,
        "lengths": [7, 3, 7, 12],
        "edges": [7, 12],
        "tests": [test for padding in PADDINGS for test in measured_with(padding)],
        "answers": ANSWERS,
        **fields,
    }
    libraries = {"openvino": "2", "mlcommons-loadgen": "6.0.17"}
    identity = {"model": "m", "variant": "v", "host": {}, "libraries": libraries}
    return TrafficRecord(**identity, threads=2, longest=16, **facts)


def with_tests(scenario: str, padding: str, **changed: Any) -> TrafficRecord:
    """A record one of whose tests says something else."""
    made = record()
    for test in made.tests:
        if (test["scenario"], test["padding"]) == (scenario, padding):
            test.update(changed)
    return made


def rows(made: TrafficRecord) -> dict[str, dict[str, Any]]:
    return {row["padding"]: row for row in traffic_entry(made, host="h")["rows"]}


def test_the_entry_says_of_which_variant_it_is_and_how_it_was_measured() -> None:
    entry = traffic_entry(record(), host="h")
    assert (entry["model"], entry["variant"], entry["host"]) == ("m", "v", "h")
    assert (entry["status"], entry["reason"], entry["threads"]) == ("ok", None, 2)
    assert (entry["batch"], entry["p99_bound_s"], entry["longest"]) == (8, 0.1, 16)
    assert entry["edges"] == [7, 12]
    assert entry["loadgen"] == "6.0.17"


def test_lengths_are_a_histogram() -> None:
    entry = traffic_entry(record(), host="h")
    assert entry["lengths"] == {"tokens": [3, 7, 12], "samples": [1, 2, 1]}


def test_there_is_one_row_a_padding_in_the_order_of_the_plan() -> None:
    assert list(rows(record())) == list(PADDINGS)
    assert list(rows(record(plan={**PLAN, "padding": ["bucketed", "fixed"]}))) == [
        "bucketed",
        "fixed",
    ]


def test_a_row_has_the_numbers_of_its_three_scenarios() -> None:
    assert rows(record())["bucketed"] == {
        "padding": "bucketed",
        "disturbed": None,
        "provisional": False,
        "samples_per_s": 75.0,
        "single_stream_p90_s": 0.02,
        "server_per_s": 39.5,
        "server_reason": None,
        "padding_share": 150 / 750,
        "gain": 1.5,
        "changed": 1,
        "ties_changed": 2,
    }


def test_gain_is_the_throughput_over_that_of_fixed() -> None:
    gains = {padding: row["gain"] for padding, row in rows(record()).items()}
    assert gains == pytest.approx({"fixed": 1.0, "longest": 1.2, "bucketed": 1.5})


def test_padding_share_is_of_all_tokens() -> None:
    shares = {padding: row["padding_share"] for padding, row in rows(record()).items()}
    assert shares == pytest.approx({"fixed": 0.5, "longest": 0.25, "bucketed": 0.2})


def test_no_padding_is_a_share_of_zero_and_not_missing() -> None:
    assert rows(with_tests("offline", "longest", padded_tokens=0))["longest"]["padding_share"] == 0


@pytest.mark.parametrize(
    ("padding", "changed", "ties"), [("fixed", 0, 0), ("longest", 0, 1), ("bucketed", 1, 2)]
)
def test_a_prediction_counts_as_changed_only_where_the_margin_of_fixed_is_no_tie(
    padding: str, changed: int, ties: int
) -> None:
    row = rows(record())[padding]
    assert (row["changed"], row["ties_changed"]) == (changed, ties)


def test_without_fixed_there_is_neither_gain_nor_change() -> None:
    plan = {**PLAN, "padding": ["longest"]}
    made = record(
        plan=plan, tests=measured_with("longest"), answers={"longest": ANSWERS["longest"]}
    )
    row = rows(made)["longest"]
    assert (row["gain"], row["changed"], row["ties_changed"]) == (None, None, None)
    assert row["samples_per_s"] == 60.0


@pytest.mark.parametrize(
    ("scenario", "missing"),
    [
        ("single_stream", {"single_stream_p90_s"}),
        ("offline", {"samples_per_s", "padding_share", "gain"}),
    ],
)
def test_an_invalid_test_counts_as_not_measured(scenario: str, missing: set[str]) -> None:
    before, after = (
        rows(made)["longest"] for made in (record(), with_tests(scenario, "longest", valid=False))
    )
    others = set(before) - missing - {"changed", "ties_changed"}
    assert {name: after[name] for name in others} == {name: before[name] for name in others}
    assert None not in {before[name] for name in missing}
    assert {after[name] for name in missing} == {None}


def test_where_the_offline_test_of_fixed_is_invalid_there_is_no_gain() -> None:
    made = rows(with_tests("offline", "fixed", valid=False))
    assert [row["gain"] for row in made.values()] == [None, None, None]
    assert made["bucketed"]["samples_per_s"] == 75.0


def test_a_rate_that_none_held_is_none_with_its_reason() -> None:
    none = {"highest_per_s": None, "issued_per_s": None, "reason": "p99 is over 0.1 s"}
    row = rows(with_tests("server", "fixed", **none))["fixed"]
    assert (row["server_per_s"], row["server_reason"]) == (None, "p99 is over 0.1 s")


def test_what_was_not_asked_for_is_none() -> None:
    made = record(plan={**PLAN, "scenarios": []}, tests=[], answers={})
    assert rows(made) == {padding: {"padding": padding, **EMPTY} for padding in PADDINGS}


def test_a_failed_record_has_no_rows_and_its_reason() -> None:
    made = record(
        status="failed", reason="not built: no operator", tests=[], answers={}, lengths=[], edges=[]
    )
    entry = traffic_entry(made, host="h")
    assert (entry["status"], entry["reason"]) == ("failed", "not built: no operator")
    assert entry["rows"] == []
    assert entry["lengths"] == {"tokens": [], "samples": []}


def test_images_have_a_size_one_row_and_nothing_of_padding() -> None:
    tests = [{**test, "padding": "none"} for test in measured_with("longest")]
    for test in tests:
        test.pop("tokens", None)
        test.pop("padded_tokens", None)
    sent = {"samples": 4, "height": 32, "width": 48, "lengths": [], "edges": []}
    answers = {"none": ANSWERS["fixed"]}
    made = record(plan={**PLAN, "padding": ["none"]}, tests=tests, answers=answers, **sent)
    entry = traffic_entry(made, host="h")
    assert (entry["samples"], entry["height"], entry["width"]) == (4, 32, 48)
    assert entry["lengths"] == {"tokens": [], "samples": []}
    numbers = {"samples_per_s": 60.0, "single_stream_p90_s": 0.02, "server_per_s": 39.5}
    assert entry["rows"] == [{"padding": "none", **EMPTY, **numbers}]


def test_the_record_itself_stays_as_it_is() -> None:
    made = record()
    before = asdict(made)
    traffic_entry(made, host="h")
    assert asdict(made) == before


@pytest.mark.parametrize(
    ("scenario", "changes", "missing"),
    [
        ("single_stream", {"foreign_cores": 0.4}, {"single_stream_p90_s"}),
        ("offline", {"foreign_cores": 0.4}, {"samples_per_s", "padding_share", "gain"}),
        ("server", {"rates": [QUIET, {"foreign_cores": 0.4}]}, {"server_per_s", "server_reason"}),
    ],
)
def test_a_test_beside_other_programs_has_no_number_and_the_row_says_why(
    scenario: str, changes: dict[str, Any], missing: set[str]
) -> None:
    made = with_tests(scenario, "longest", **changes)
    made.busiest = {"python3 train.py": 0.8}
    before, after = rows(record())["longest"], rows(made)["longest"]
    others = set(before) - missing - {"disturbed"}
    assert {name: after[name] for name in others} == {name: before[name] for name in others}
    assert {after[name] for name in missing} == {None}
    words = f"used up to 0.4 cores of its processors in {scenario.replace('_', ' ')}; the busiest: "
    assert words in after["disturbed"] and "train.py (80 % of a core)" in after["disturbed"]
    (given,) = [
        row
        for row in traffic_entry(made, host="h", accept_disturbed=True)["rows"]
        if row["padding"] == "longest"
    ]
    assert given == {**before, "disturbed": after["disturbed"], "provisional": True}
