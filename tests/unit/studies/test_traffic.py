"""Rows of traffic: gains from rounds, what counts of them, and what is said of it."""

from typing import Any

import pytest
from study_records import study_record
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.studies.study import Estimate, StudyRecord
from tightrope.studies.traffic import (
    FIXED,
    TIE,
    UNPADDED,
    LoadGenTest,
    Offline,
    Rehearsal,
    Row,
    Sent,
    Server,
    SingleStream,
    rows,
    words,
)

PADDINGS = ("fixed", "longest", "bucketed")
SCENARIOS = ("single_stream", "offline", "server")
SENT = Sent(samples=4, of=4, lengths=[7, 3, 7, 12], edges=[7, 12], longest=16)
# of the paddings: samples a second, tokens that padding added to 600 of samples
OFFLINE = {"fixed": (50.0, 600), "longest": (60.0, 200), "bucketed": (75.0, 150)}
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
# of the server: rates, whether they are valid, and their p99; that of the highest valid one counts
RATES = ((20.0, True, 0.03), (80.0, False, 0.2), (40.0, True, 0.06))
SINGLE_STREAM = {"single_stream_p90_s", "single_stream_p99_s"}
THROUGHPUT = {"samples_per_s", "gain", "gain_verdict"}


def of_padding(padding: str) -> list[LoadGenTest]:
    """The tests of a padding, all paddings faster or slower in one round than in the last."""
    own = {"padding": padding, "valid": True, "foreign_cores": MAX_FOREIGN_CORES, "duration_s": 1.0}
    found: list[LoadGenTest] = []
    rate, added = OFFLINE[padding]
    for number, speed, wobble, p90_s in zip(ROUNDS, SPEEDS, WOBBLE[padding], P90_S, strict=True):
        latencies = {"p50_s": 0.01, "p90_s": p90_s, "p99_s": 0.05, "queries": 64}
        tokens = {"tokens": 600, "padded_tokens": added, "samples": 100, "batches": 13}
        found.append(SingleStream(**own, round=number, **latencies))
        found.append(Offline(**own, round=number, **tokens, samples_per_s=rate * speed * wobble))
    for number, (rate, valid, p99_s) in enumerate(RATES, start=1):
        sent = {"target_per_s": rate, "issued_per_s": rate - 0.5, "queries": 662, "late": 0}
        found.append(Server(**{**own, "valid": valid}, round=number, p99_s=p99_s, **sent))
    return found


def record(*paddings: str, **fields: Any) -> StudyRecord:
    """A record with these paddings, by default with all of them."""
    took = {"short_s": 0.1, "long_s": 0.2, "samples_per_s": 1.0}
    calls: list[Any] = [SENT]
    calls += [Rehearsal(padding=one, **took, **ANSWERS[one]) for one in paddings or PADDINGS]
    calls += [test for one in paddings or PADDINGS for test in of_padding(one)]
    settings = {"scenarios": SCENARIOS, "padding": PADDINGS, "batch": 8, "p99_bound_s": 0.1}
    told = {"calls": calls, "settings": settings, "libraries": {"mlcommons-loadgen": "6.0.17"}}
    return study_record("traffic", **{**told, **fields})


def altered(kind: type[Any], padding: str, *rounds: int, **changed: Any) -> StudyRecord:
    """A record whose tests of a kind and padding in these rounds, or all, say something else."""
    made = record()
    for one in made.calls:
        if isinstance(one, kind) and one.padding == padding and one.round in (rounds or ROUNDS):
            for name, value in changed.items():
                setattr(one, name, value)
    return made


def of(made: StudyRecord, accept: bool = False) -> dict[str, Row]:
    return {one.padding: one for one in rows(made, accept)}


def changed(before: Row, after: Row) -> set[str]:
    """The names of the fields whose values differ, but the number of tests that count."""
    names = {*Row.__struct_fields__} - {"calls"}
    return {name for name in names if getattr(before, name) != getattr(after, name)}


def test_a_row_has_the_numbers_of_its_three_scenarios() -> None:
    row = of(record())["bucketed"]
    assert row.samples_per_s == pytest.approx(75.0, rel=0.02)
    assert (row.single_stream_p90_s, row.single_stream_p99_s) == (0.02, 0.05)
    assert (row.server_per_s, row.server_p99_s, row.server_reason) == (39.5, 0.06, None)
    assert (row.calls, row.samples, row.batch, row.edges, row.longest) == (11, 4, 8, [7, 12], 16)
    # a prediction counts as changed only where the margin of fixed is no tie
    found = {name: (one.changed, one.ties_changed) for name, one in of(record()).items()}
    assert found == {"fixed": (0, 0), "longest": (0, 1), "bucketed": (1, 2)}
    row = of(altered(Server, "fixed", valid=False))["fixed"]
    assert (row.server_per_s, row.server_reason) == (None, "p99 is over 0.1 s even at 20 queries/s")


def test_gain_comes_from_the_ratio_of_each_round_whatever_the_machine_does() -> None:
    found = of(record())
    for padding, ratio in (("longest", 1.2), ("bucketed", 1.5)):
        gain = found[padding].gain
        assert gain.value == pytest.approx(ratio, rel=0.01)
        assert gain.low < ratio < gain.high < 1.15 * gain.low
        assert found[padding].gain_verdict == "faster"
    assert (found[FIXED].gain, found[FIXED].gain_verdict) == (Estimate(1.0, 1.0, 1.0), None)
    # of padding alone the ratio of all tokens
    assert {name: (one.padding_gain, one.padding_share) for name, one in found.items()} == {
        **{"fixed": (1.0, 0.5), "longest": (1200 / 800, 0.25), "bucketed": (1200 / 750, 0.2)}
    }
    assert of(altered(Offline, "longest", padded_tokens=0))["longest"].padding_share == 0
    # a gain whose interval holds one is a tie
    made = record()
    for one in made.calls:
        if isinstance(one, Offline) and one.padding == "longest":
            one.samples_per_s = 50.0 * SPEEDS[one.round - 1] * (1.3, 0.8, 1.2, 0.7)[one.round - 1]
    row = of(made)["longest"]
    assert row.gain_verdict == "tie"
    assert row.gain.low < 1 < row.gain.high
    # without fixed there is neither gain nor change
    row = of(record("longest"))["longest"]
    assert (row.gain, row.padding_gain, row.changed, row.ties_changed) == (None,) * 4
    assert row.samples_per_s == pytest.approx(60.0, rel=0.05)


def test_a_round_counts_for_no_padding_if_one_of_its_tests_is_invalid() -> None:
    made = of(altered(Offline, "fixed", 2, 3, valid=False))
    assert [(row.gain, row.samples_per_s) for row in made.values()] == [(None, None)] * 3
    made = of(altered(Offline, "fixed", 2, valid=False))
    assert made["bucketed"].gain.value == pytest.approx(1.5, rel=0.02)
    # invalid tests count as not measured
    before = of(record())["longest"]
    for kind, missing in ((SingleStream, SINGLE_STREAM), (Offline, THROUGHPUT)):
        after = of(altered(kind, "longest", valid=False))["longest"]
        assert changed(before, after) == missing | {"reason"}
        assert {getattr(after, name) for name in missing} == {None}
        scenario = kind.__struct_config__.tag.replace("_", " ")
        assert after.reason == f"{scenario} (0 of 4 rounds were valid, 3 are needed)"


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        (SingleStream, SINGLE_STREAM),
        (Offline, THROUGHPUT),
        (Server, {"server_per_s", "server_p99_s"}),
    ],
)
def test_with_too_few_undisturbed_rounds_a_row_has_no_number_and_says_why(kind, missing):
    made = altered(kind, "longest", 2, 4, foreign_cores=0.4)
    made.busiest = {"python3 train.py": 0.8}
    before, after = of(record())["longest"], of(made)["longest"]
    assert changed(before, after) == missing | {"disturbed"}
    assert {getattr(after, name) for name in missing} == {None}
    scenario = kind.__struct_config__.tag.replace("_", " ")
    assert f"used up to 0.4 cores of its processors in {scenario}" in after.disturbed
    assert "train.py (80 % of a core)" in after.disturbed
    few = "2 of 4 rounds were undisturbed, 3 are needed" in after.disturbed
    assert few == (kind is not Server)
    assert changed(before, of(made, accept=True)["longest"]) == {"disturbed", "provisional"}


def test_one_disturbed_round_does_not_count_and_the_others_give_the_numbers() -> None:
    made = altered(Offline, "longest", 3, foreign_cores=0.4, samples_per_s=1.0)
    for accept in (False, True):
        row = of(made, accept)["longest"]
        assert (row.disturbed, row.provisional) == (None, False)
        assert row.gain.value == pytest.approx(1.2, rel=0.03)
    # two disturb every padding
    lost = of(altered(Offline, "longest", 2, 4, foreign_cores=0.4)).values()
    assert [(bool(row.disturbed), row.samples_per_s) for row in lost] == [(True, None)] * 3


def test_what_was_not_asked_for_is_none() -> None:
    made = record(settings={"scenarios": ["offline"], "batch": 8, "p99_bound_s": 0.1})
    made.calls = [one for one in made.calls if not isinstance(one, LoadGenTest)]
    none = dict.fromkeys((*SINGLE_STREAM, *THROUGHPUT, "padding_share", "server_per_s", "reason"))
    for row in rows(made, False):
        assert {name: getattr(row, name) for name in none} == none


def test_the_words_say_what_was_sent_and_how_it_was_answered() -> None:
    made = record()
    assert " ".join(words(rows(made, False), made)) == (
        "MLPerf LoadGen 6.0.17 sent 4 texts of 3 to 12 tokens, each with its true length. 75.0 % "
        "have 1 to 7 tokens. 25.0 % have 8 to 12 tokens. Padding fixed takes all to 16 tokens. "
        "Samples that wait are answered together, in batches of up to 8, with 2 threads; p99 of a "
        "server is to be within 100 ms."
    )
    told = Rehearsal(padding=UNPADDED, short_s=0.2, long_s=0.2, samples_per_s=5.0)
    for of_all, what in (
        (400, "400 images; "),
        (1024, "the first 400 of 1,024 images, as many as are held in memory; "),
    ):
        made = record(calls=[Sent(samples=400, of=of_all), told], threads=1)
        (row,) = rows(made, False)
        assert row.server_reason == "one image alone takes 0.2 s, the bound of p99 is 0.1 s"
        first, last = words([row], made)
        assert first == f"MLPerf LoadGen 6.0.17 sent {what}decoding them is not timed."
        assert "with 1 thread; p99" in last
