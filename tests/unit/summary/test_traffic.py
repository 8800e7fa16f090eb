from typing import Any

import pytest
from msgspec import convert
from raced import HOST, PLACE
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.records.traffic import OfflineTest, Rate, ServerTest, SingleStreamTest, TrafficRecord
from tightrope.summary.traffic import TIE, traffic_entry

PADDINGS = ("fixed", "longest", "bucketed")
PLAN = {
    **{"scenarios": ["single_stream", "offline", "server"], "padding": list(PADDINGS)},
    **{"batch": 8, "buckets": 2, "seconds": 1, "p99_bound_s": 0.1},
}
# of the paddings: samples a second, tokens that padding added to 600 of samples
OFFLINE = {"fixed": (50.0, 600), "longest": (60.0, 200), "bucketed": (75.0, 150)}
QUIET = {"foreign_cores": MAX_FOREIGN_CORES}
ROUNDS = (1, 2, 3, 4)
# the machine in each round, and what a padding alone does in it
SPEEDS = (1.0, 0.5, 2.0, 1.0)
WOBBLE = {
    "fixed": (1.0, 1.0, 1.0, 1.0),
    "longest": (1.02, 0.98, 1.02, 0.98),
    "bucketed": (1.0, 1.01, 1.01, 1.0),
}
P90_S = (0.01, 0.03, 0.02, 0.02)
ANSWERS = {
    "fixed": {"predictions": [0, 1, 2, 0], "margins": [3.0, TIE, 1.01 * TIE, 0.0]},
    "longest": {"predictions": [0, 2, 2, 0], "margins": [3.0, 0.5, 1.0, 0.0]},
    "bucketed": {"predictions": [0, 0, 1, 1], "margins": [3.0, 9.0, 9.0, 9.0]},
}
# the p99 that counts is that of the highest valid rate
SENT = {"issued_per_s": 1.0, "duration_s": 1.0, "queries": 662, "late": 0}
RATES = [
    {"target_per_s": target, "valid": valid, "p99_s": p99_s, **SENT, **QUIET}
    for target, valid, p99_s in ((20.0, True, 0.03), (80.0, False, 0.2), (40.0, True, 0.06))
]
KINDS = {"single_stream": SingleStreamTest, "offline": OfflineTest, "server": ServerTest}


SINGLE_STREAM = {"single_stream_p90_s", "single_stream_p99_s"}
MISSING = {"samples_per_s", "gain", "gain_low", "gain_high", "gain_verdict"}


EMPTY = {
    **{"disturbed": None, "provisional": False, "padding_share": None, "padding_gain": None},
    **dict.fromkeys((*MISSING, *SINGLE_STREAM, "server_per_s", "server_p99_s", "server_reason")),
    **{"changed": None, "ties_changed": None},
}


def measured_with(padding: str, number: int) -> list[dict[str, Any]]:
    """The tests of a padding in one round, all paddings faster or slower than in the last."""
    rate, padded = OFFLINE[padding]
    rate *= SPEEDS[number - 1] * WOBBLE[padding][number - 1]
    own = {"name": padding, "round": number, "valid": True, "duration_s": 1.0, **QUIET}
    latencies = {"p50_s": 0.01, "p90_s": P90_S[number - 1], "p99_s": 0.05, "queries": 64}
    offline = {"batches": 13, "samples": 100, "samples_per_s": rate}
    offline |= {"tokens": 600, "padded_tokens": padded, "scenario": "offline"}
    return [{**own, "scenario": "single_stream", **latencies}, {**own, **offline}]


def all_tests(*paddings: str) -> list[dict[str, Any]]:
    rounds = [measured_with(one, number) for number in ROUNDS for one in paddings]
    server = {"rates": RATES, "highest_per_s": 40.0, "issued_per_s": 39.5, "duration_s": 3.0}
    servers = [{"name": one, "scenario": "server", **server} for one in paddings]
    return [test for tests in rounds for test in tests] + servers


def record(**fields: Any) -> TrafficRecord:
    libraries = {"openvino": "2", "mlcommons-loadgen": "6.0.17"}
    known = {"model": "m", "variant": "v", "host": HOST, "libraries": libraries, "plan": PLAN}
    sent = {"threads": 2, "longest": 16, "lengths": [7, 3, 7, 12], "edges": [7, 12]}
    tests = {"tests": all_tests(*PADDINGS), "answers": ANSWERS}
    return convert({**known, **sent, **tests, **fields}, TrafficRecord)


def with_tests(scenario: str, padding: str, rounds: Any = ROUNDS, **changed: Any) -> TrafficRecord:
    """A record whose tests of a scenario and padding in these rounds say something else."""
    made = record()
    for test in made.tests:
        own = isinstance(test, KINDS[scenario]) and test.name == padding
        for name in changed if own and getattr(test, "round", rounds[0]) in rounds else ():
            setattr(test, name, changed[name])
    return made


def rows(made: TrafficRecord) -> dict[str, dict[str, Any]]:
    return {row["padding"]: row for row in traffic_entry(made)["rows"]}


def test_the_entry_says_of_which_variant_it_is_and_how_it_was_measured() -> None:
    entry = traffic_entry(record())
    assert (entry["model"], entry["variant"], entry["host"]) == ("m", "v", PLACE)
    assert (entry["status"], entry["reason"], entry["threads"]) == ("ok", None, 2)
    assert (entry["batch"], entry["p99_bound_s"], entry["longest"]) == (8, 0.1, 16)
    assert entry["edges"] == [7, 12]
    assert entry["lengths"] == {"tokens": [3, 7, 12], "samples": [1, 2, 1]}
    assert list(rows(record())) == list(PADDINGS)
    turned = record(plan={**PLAN, "padding": ["bucketed", "fixed"]})
    assert list(rows(turned)) == ["bucketed", "fixed"]
    # a prediction counts as changed only where the margin of fixed is no tie
    changed = {name: (one["changed"], one["ties_changed"]) for name, one in rows(record()).items()}
    assert changed == {"fixed": (0, 0), "longest": (0, 1), "bucketed": (1, 2)}
    assert entry["loadgen"] == "6.0.17"


def test_a_row_has_the_numbers_of_its_three_scenarios() -> None:
    row = rows(record())["bucketed"]
    assert row.keys() == {"padding", *EMPTY}
    rate = pytest.approx(75.0, rel=0.02)
    expected = {"samples_per_s": rate, "single_stream_p90_s": 0.02, "single_stream_p99_s": 0.05}
    expected |= {"server_per_s": 39.5, "server_p99_s": 0.06, "server_reason": None}
    assert {name: row[name] for name in expected} == expected
    none = {"highest_per_s": None, "issued_per_s": None, "reason": "p99 is over 0.1 s"}
    row = rows(with_tests("server", "fixed", **none))["fixed"]
    assert (row["server_per_s"], row["server_reason"]) == (None, "p99 is over 0.1 s")


def test_gain_comes_from_the_ratio_of_each_round_whatever_the_machine_does() -> None:
    found = rows(record())
    gains = {padding: row["gain"] for padding, row in found.items() if padding != "fixed"}
    assert gains == pytest.approx({"longest": 1.2, "bucketed": 1.5}, rel=0.01)
    assert found["longest"]["gain_low"] < 1.2 < found["longest"]["gain_high"]
    assert found["longest"]["gain_high"] / found["longest"]["gain_low"] < 1.15
    fixed = found["fixed"]
    assert (fixed["gain"], fixed["padding_gain"], fixed["gain_verdict"]) == (1.0, 1.0, None)
    assert (fixed["gain_low"], fixed["gain_high"]) == (None, None)
    # of padding alone the ratio of all tokens
    assert {name: (one["padding_gain"], one["padding_share"]) for name, one in found.items()} == {
        **{"fixed": (1.0, 0.5), "longest": (1200 / 800, 0.25), "bucketed": (1200 / 750, 0.2)}
    }
    assert rows(with_tests("offline", "longest", padded_tokens=0))["longest"]["padding_share"] == 0
    # a gain whose interval holds one is a tie
    made = record()
    for test in made.tests:
        if isinstance(test, OfflineTest) and test.name == "longest":
            number = test.round - 1
            test.samples_per_s = 50.0 * SPEEDS[number] * (1.3, 0.8, 1.2, 0.7)[number]
    row = rows(made)["longest"]
    assert row["gain_verdict"] == "tie"
    assert row["gain_low"] < 1 < row["gain_high"]


def test_without_fixed_there_is_neither_gain_nor_change() -> None:
    plan = {**PLAN, "padding": ["longest"]}
    made = record(plan=plan, tests=all_tests("longest"), answers={"longest": ANSWERS["longest"]})
    row = rows(made)["longest"]
    assert (row["gain"], row["padding_gain"]) == (None, None)
    assert (row["changed"], row["ties_changed"]) == (None, None)
    assert row["samples_per_s"] == pytest.approx(60.0, rel=0.05)


def test_a_round_counts_for_no_padding_if_one_of_its_tests_is_invalid() -> None:
    made = rows(with_tests("offline", "fixed", (2, 3), valid=False))
    assert [row["gain"] for row in made.values()] == [None, None, None]
    assert [row["samples_per_s"] for row in made.values()] == [None, None, None]
    made = rows(with_tests("offline", "fixed", (2,), valid=False))
    assert made["bucketed"]["gain"] == pytest.approx(1.5, rel=0.02)
    # invalid tests count as not measured
    before = rows(record())["longest"]
    for scenario, missing in (("single_stream", SINGLE_STREAM), ("offline", MISSING)):
        after = rows(with_tests(scenario, "longest", valid=False))["longest"]
        assert missing <= changed(before, after) <= missing | {"changed", "ties_changed"}
        assert {after[name] for name in missing} == {None}


def test_what_was_not_asked_for_is_none_and_a_failed_record_has_no_rows_and_its_reason() -> None:
    none: dict[str, Any] = {"tests": [], "answers": {}}
    made = record(plan={**PLAN, "scenarios": []}, **none)
    assert rows(made) == {padding: {"padding": padding, **EMPTY} for padding in PADDINGS}
    none |= {"status": "failed", "reason": "not built: no operator", "lengths": [], "edges": []}
    entry = traffic_entry(record(**none))
    assert (entry["status"], entry["reason"]) == ("failed", "not built: no operator")
    assert entry["rows"] == []
    assert entry["lengths"] == {"tokens": [], "samples": []}


LOADED: dict[str, Any] = {"foreign_cores": 0.4}
BUSY_RATES = convert([*RATES, {**RATES[1], **LOADED}], list[Rate])


def changed(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    """The names of the fields whose values differ."""
    return {name for name in before if before[name] != after[name]}


@pytest.mark.parametrize(
    ("scenario", "changes", "missing"),
    [
        ("single_stream", LOADED, SINGLE_STREAM),
        ("offline", LOADED, MISSING),
        ("server", {"rates": BUSY_RATES}, {"server_per_s", "server_p99_s"}),
    ],
)
def test_with_too_few_undisturbed_rounds_a_row_has_no_number_and_says_why(
    scenario, changes, missing
):
    made = with_tests(scenario, "longest", (2, 4), **changes)
    made.busiest = {"python3 train.py": 0.8}
    before, after = rows(record())["longest"], rows(made)["longest"]
    assert changed(before, after) == missing | {"disturbed"}
    assert {after[name] for name in missing} == {None}
    words = f"used up to 0.4 cores of its processors in {scenario.replace('_', ' ')}"
    assert words in after["disturbed"] and "train.py (80 % of a core)" in after["disturbed"]
    if scenario != "server":
        assert "2 of 4 rounds were undisturbed, 3 are needed" in after["disturbed"]
    given = traffic_entry(made, accept_disturbed=True)["rows"][PADDINGS.index("longest")]
    assert given == {**before, "disturbed": after["disturbed"], "provisional": True}


def test_one_disturbed_round_does_not_count_and_the_others_give_the_numbers() -> None:
    made = with_tests("offline", "longest", (3,), foreign_cores=0.4, samples_per_s=1.0)
    for accept_disturbed in (False, True):
        entry = traffic_entry(made, accept_disturbed=accept_disturbed)
        row = entry["rows"][PADDINGS.index("longest")]
        assert (row["disturbed"], row["provisional"]) == (None, False)
        assert row["gain"] == pytest.approx(1.2, rel=0.03)
    # two disturb every padding
    lost = rows(with_tests("offline", "longest", (2, 4), foreign_cores=0.4)).values()
    assert [(bool(row["disturbed"]), row["samples_per_s"]) for row in lost] == [(True, None)] * 3
