"""The variant for a goal on planted summaries, and what its bounds cost."""

from typing import Any

import pytest
from goals import (
    BASELINE,
    BATCH,
    BF16,
    INT8,
    SMALL,
    decided,
    failed,
    goal,
    raced,
    reasons,
    result,
    row,
)
from msgspec.structs import replace
from raced import PLACE, SHAPE
from results import WHY
from tightrope.decide.bounds import Goal
from tightrope.decide.goal import GoalDecision, for_goal
from tightrope.decide.phrases import cost_words, sentence, why
from tightrope.decide.recommend import Rejected
from tightrope.decide.result import Accuracy, Reason, Result, StudyEntry


def planted() -> list[Result]:
    """INT8 is the fastest, SMALL takes the least memory, BF16 the least energy at SHAPE.

    At BATCH an inference takes the least time with BF16.
    """

    def both(variant: str, one: Any, batch: Any, **changes: Any) -> Result:
        """Milliseconds, speed-up and joules at SHAPE and at BATCH."""
        rows = [row(*one[:2], energy_j=one[2]), row(*batch[:2], energy_j=batch[2], shape=BATCH)]
        return result(variant, *rows, **changes)

    return [
        both(BASELINE, (10.0, None, 2.0), (100.0, None, 16.0), mb=900),
        both(INT8, (4.0, 2.5, 1.0), (48.0, 2.1, 9.0), mb=1200, lost=0.9),
        both(BF16, (5.0, 2.0, 0.5), (40.0, 2.5, 8.0), mb=800),
        both(SMALL, (8.0, 1.25, 1.5), (80.0, 1.25, 14.0), mb=300),
        failed("cpu-compile-bf16"),
    ]


def at_shape(wanted: Goal, results: Any = None) -> GoalDecision:
    """The decision at SHAPE, after a race of the two fastest."""
    results = results or planted()
    (found,) = decided(replace(wanted, shape=SHAPE), results, raced(results, int8=4.0, bf16=5.0))
    return found


SLOWER = f"times the latency of {INT8}, the fastest"


@pytest.mark.parametrize(
    ("minimize", "variant", "value", "unit", "words"),
    [
        ("latency", INT8, 4.0, "ms", "4 ms"),
        ("memory", SMALL, 300.0, "MB", f"300 MB, with 2 {SLOWER}"),
        ("energy", BF16, 0.5, "J per inference", f"0.5 J per inference, with 1.25 {SLOWER}"),
        ("cost", INT8, 1e6 * 0.004 / 3600, "machine hours per million inferences", ""),
    ],
)
def test_the_goal_decides_which_of_the_same_variants_is_chosen(
    minimize: str, variant: str, value: float, unit: str, words: str
) -> None:
    found = at_shape(goal(minimize))
    assert (found.variant, found.unit, found.shape) == (variant, unit, SHAPE)
    assert found.value == pytest.approx(value)
    assert sentence(goal(minimize), found).endswith(f"{variant}, {words}" if words else "")
    assert (found.bounds, found.nearest, found.provisional) == ([], None, False)
    assert set(reasons(found)) == {one.variant for one in planted()} - {variant}


def test_the_latency_goal_without_bounds_is_the_recommendation_of_the_race() -> None:
    results = planted()
    race = raced(results, int8=4.0, bf16=3.0)  # the race told them apart the other way round
    (found,) = decided(goal("latency", shape=SHAPE), results, race)
    (recommended,) = (one for one in race if one.shape == SHAPE)
    assert found.variant == recommended.variant == BF16
    assert reasons(found) == reasons(recommended)
    # for_goal puts the goal's choice in the place of the race's at its own shape alone
    least = goal("memory", shape=SHAPE)
    memory = decided(least, results, race)
    after = for_goal(race, memory)
    assert [one.variant for one in after] == [SMALL, None]  # nothing raced at BATCH
    assert why(after[0], least, memory) == sentence(least, memory[0])
    assert after[0].rejected == memory[0].rejected
    assert after[1] == race[1] and for_goal(race, []) == race
    # a time that no race decided
    (found,) = decided(goal("latency", shape=SHAPE), planted())
    assert (found.variant, found.provisional) == (INT8, True)
    results = planted()
    results[1].peak_rss_bytes = 10**8
    fastest = sentence(least, at_shape(least, results))
    assert fastest.endswith(f"{INT8}, 100 MB, the fastest")
    assert decided(None, planted()) == []  # type: ignore[arg-type]


def test_without_a_shape_there_is_a_decision_at_each_and_of_cost_one_at_the_cheapest() -> None:
    results = planted()
    both = decided(goal("energy"), results)
    assert [(one.shape, one.variant) for one in both] == [(SHAPE, BF16), (BATCH, BF16)]
    assert both[1].value == pytest.approx(8.0 / 16)
    (cheapest,) = decided(goal("cost"), results, prices={"*": 0.36})
    assert (cheapest.shape, cheapest.variant) == (BATCH, BF16)
    # 2.5 ms per inference, of an hour that costs 0.36: 0.0001 per second
    assert cheapest.value == pytest.approx(1e6 * 0.0025 * 0.0001)
    assert cheapest.unit == "per million inferences"


def test_a_bound_on_p99_takes_the_next_one_and_says_what_it_costs() -> None:
    results = planted()
    results[1].latency[0].p99_s = 0.0072
    wanted = goal("latency", p99_ms=7.5)
    found = at_shape(wanted, results)
    assert (found.variant, found.bounds[0].more) == (INT8, 0.0)
    assert cost_words(wanted, found.bounds[0]) == "p99 at most 7.5 ms costs nothing"
    results[1].latency[0].p99_s = 0.0092
    found = at_shape(wanted, results)
    assert (found.variant, found.value) == (BF16, pytest.approx(5.0))
    (cost,) = found.bounds
    assert (cost.bound, cost.limit, cost.variant) == ("p99_ms", 7.5, INT8)
    assert (cost.value, cost.more) == (pytest.approx(4.0), pytest.approx(0.25))
    assert sentence(wanted, found) == (
        "For the least latency at batch 1, sequence 64 with p99 at most 7.5 ms: "
        f"{BF16}, 5 ms; p99 at most 7.5 ms costs 25 % more latency than {INT8}"
    )
    assert reasons(found)[INT8] == "p99 9.2 ms, 1.7 ms over the bound of 7.5 ms"


def test_a_bound_on_memory_and_one_on_accuracy_each_have_their_own_cost() -> None:
    results = planted()
    found = at_shape(goal("latency", memory_mb=500, accuracy_points=0.5), results)
    assert found.variant == SMALL
    memory, accuracy = found.bounds
    # without the bound of memory BF16 is left, without that of accuracy SMALL still is
    assert (memory.variant, memory.more) == (BF16, pytest.approx(8 / 5 - 1))
    assert (accuracy.variant, accuracy.more) == (SMALL, 0.0)
    # INT8 misses both: memory by 140 %, accuracy by 80 %
    assert reasons(found)[INT8] == "memory 1,200 MB, 700 MB over the bound of 500 MB"
    assert [one.variant for one in found.rejected][:2] == [INT8, BF16]
    assert found.rejected[-1] == Rejected(
        "cpu-compile-bf16", Reason.of("failed", reason="too slow")
    )


def test_a_bound_on_accuracy_replaces_the_budget_and_is_checked_at_the_low_end() -> None:
    results = planted()
    assert at_shape(goal("latency", accuracy_points=0.9), results).variant == INT8
    assert at_shape(goal("latency", accuracy_points=0.8), results).variant == BF16
    results[1] = result(INT8, row(4.0, 2.5), lost=2.0)
    unkept = at_shape(goal("latency"), results)
    assert unkept.variant == BF16
    assert reasons(unkept)[INT8].startswith("accuracy undecided")
    assert at_shape(goal("latency", accuracy_points=2.0), results).variant == INT8
    # one in float with the logits of the baseline meets any bound, although 3 points are over it
    change: Any = {"verdict": "kept", "delta": 0.0, "delta_low": -0.03, "delta_high": 0.03}
    results[3].accuracy = Accuracy(0.9, 0.88, 0.92, 1500, **change)
    assert at_shape(goal("memory", accuracy_points=0.5), results).variant == SMALL


def test_where_nothing_meets_the_goal_the_nearest_says_by_how_much() -> None:
    wanted = goal("latency", p99_ms=5.0, memory_mb=700)
    found = at_shape(wanted)
    assert (found.variant, found.value) == (None, None)
    # BF16: p99 by 50 %, memory by 14 %; INT8: by 20 % and 71 %; SMALL: p99 by 140 %
    assert found.nearest.variant == BF16
    told = [(one.bound, one.value, one.by) for one in found.nearest.misses]
    assert told == [("p99_ms", pytest.approx(7.5), pytest.approx(2.5)), ("memory_mb", 800.0, 100.0)]
    assert sentence(wanted, found).endswith(
        f"no variant meets it; the nearest is {BF16}: p99 7.5 ms, 2.5 ms over the bound of 5 ms "
        "and memory 800 MB, 100 MB over the bound of 700 MB"
    )
    assert [one.more for one in found.bounds] == [None, None]


@pytest.mark.parametrize(
    ("limit", "stop", "reason"),
    [
        (50, "width", "200 of 662 calls"),
        (50, "calls", "200 of 662 calls; set latency: {calls: 800}"),
        # more calls would not help
        (3.5, "width", "p50 is 4 ms already, over the bound of 3.5 ms"),
    ],
)
def test_a_p99_of_too_few_calls_does_not_meet_a_bound_and_says_what_to_do(limit, stop, reason):
    results = planted()
    row = results[1].latency[0]
    results[1].latency[0] = replace(row, p99_s=None, samples=200, stop=stop)
    found = at_shape(goal("latency", p99_ms=limit), results)
    assert found.variant != INT8
    assert reasons(found)[INT8] == f"p99 not known: {reason}"


def test_where_p99_is_not_known_the_goal_may_be_met_and_the_decision_does_not_deny_it() -> None:
    results = [result(BASELINE, row(10.0, p99_s=None, samples=70))]
    wanted = goal("memory", p99_ms=12.0, shape=SHAPE)
    (found,) = decided(wanted, results)
    assert found.variant is None
    assert sentence(wanted, found).endswith(
        f"no variant is known to meet it; the nearest is {BASELINE}: p99 not known: 70 of 662 calls"
    )
    # energy that the machine does not show chooses nothing
    results = [result(BASELINE, row(10.0)), result(BF16, row(5.0, 2.0))]
    (found,) = decided(goal("energy"), results)
    assert (found.variant, found.nearest) == (None, None)
    assert reasons(found) == dict.fromkeys((BASELINE, BF16), "the machine shows no energy of it")
    assert sentence(goal("energy"), found).endswith("no variant qualifies")


def test_a_disturbed_variant_that_may_be_better_makes_the_decision_provisional() -> None:
    results = planted()
    results[3].latency[0] = replace(results[3].latency[0], paired_s=None, disturbed=WHY)
    found = at_shape(goal("memory"), results)
    assert (found.variant, found.provisional) == (BF16, True)
    assert reasons(found)[SMALL] == f"disturbed: {WHY}"
    # it cannot meet this bound whatever its time is, but its accuracy alone does not say so
    results[3].accuracy.verdict = "dropped"
    assert at_shape(goal("memory"), results).provisional is False


def traffic(variant: str, **changes: Any) -> StudyEntry:
    """Traffic of a variant with one padding."""
    numbers = {"samples_per_s": 100.0, "single_stream_p90_s": 0.01, "single_stream_p99_s": 0.02}
    server = {"server_per_s": 50.0, "server_p99_s": 0.03, "server_reason": None}
    told = {"padding": "fixed", "reason": None, "disturbed": None, "provisional": False}
    rows = [{**told, **numbers, **server}, {**told, **numbers, **server, **changes}]
    return StudyEntry("m", variant, PLACE, "ok", None, "", SHAPE, 1, 1.0, words=[], rows=rows)


def test_under_traffic_its_own_rates_and_percentiles_count() -> None:
    loads = [
        traffic(BASELINE),
        traffic(INT8, padding="bucketed", server_per_s=90.0, server_p99_s=0.04),
        traffic(BF16, padding="longest", samples_per_s=400.0, single_stream_p90_s=0.004),
    ]
    results = planted()
    for wanted, chosen, padding, value in (
        (goal("latency", traffic="single_stream"), BF16, "longest", 4.0),
        (goal("cost", traffic="offline"), BF16, "longest", 1e6 / 400 / 3600),
        (goal("cost", traffic="server"), INT8, "bucketed", 1e6 / 90 / 3600),
        (goal("cost", traffic="server", p99_ms=35.0), BASELINE, "fixed", 1e6 / 50 / 3600),
    ):
        (found,) = decided(wanted, results, traffic=loads)
        assert (found.variant, found.padding) == (chosen, padding), wanted
        assert found.value == pytest.approx(value)
        assert (found.shape, found.traffic) == (None, wanted.traffic)
    assert reasons(found)[SMALL] == "not measured under this traffic"
    assert found.bounds[0].more == pytest.approx(90 / 50 - 1)
    load = traffic(BASELINE, server_p99_s=None)
    del load.rows[0]
    (found,) = decided(goal("cost", traffic="server", p99_ms=35.0), planted(), traffic=[load])
    assert reasons(found)[BASELINE] == "p99 not known: not measured under this traffic"
    load.rows[0].update(server_per_s=None, server_reason="p99 is over 0.1 s")
    (found,) = decided(goal("cost", traffic="server"), planted(), traffic=[load])
    assert reasons(found)[BASELINE] == "p99 is over 0.1 s"
