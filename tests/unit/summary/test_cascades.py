"""What summary.json says of a cascade, and what to do with it."""

from typing import Any

import msgspec
import pytest
from raced import HOST
from tightrope.records.cascade import CascadeRecord
from tightrope.records.rounds import FEWEST_ROUNDS
from tightrope.summary.cascade_types import Cascade
from tightrope.summary.cascades import cascade_entry, why_traffic_was_disturbed

SAMPLES = 2000


def passed(threshold: float, **changes: Any) -> dict[str, Any]:
    test = {"threshold": threshold, "answered": 600, "lost": 1, "gained": 0, "p_value": 0.01}
    return {**test, **changes}


def rounds(*seconds: float, count: int = 12, foreign: float = 0.0) -> list[dict[str, Any]]:
    """Rounds in which small model, large model and cascade take so long, give or take a percent."""
    return [
        {
            "blocks_s": [[one * (1 + 0.01 * ((n + k) % 3))] for k, one in enumerate(seconds)],
            "foreign_cores": foreign,
        }
        for n in range(count)
    ]


def answers(lost: int, escalated: int, labels: bool = True) -> dict[str, Any]:
    """Answers of a large model that is always right, and of a cascade that loses so many."""
    return {
        "labels": [0] * SAMPLES if labels else None,
        "small": [1] * (lost + 100) + [0] * (SAMPLES - lost - 100),
        "large": [0] * SAMPLES,
        "confidences": [0.5] * SAMPLES,
        "cascade": [1] * lost + [0] * (SAMPLES - lost),
        "escalated": [False] * (SAMPLES - escalated) + [True] * escalated,
    }


def record(**changes: Any) -> CascadeRecord:
    fields = {
        **{"model": "large", "variant": "cpu-openvino-bf16", "host": HOST, "libraries": {}},
        **{"cascade": "fast", "small_model": "small", "small_variant": "cpu-openvino-bf16"},
        **{"small_engine_sha256": "1", "calibration_sha256": "2", "data_sha256": "3"},
        **{"agreement": None, "budget_points": 1.0, "threads": 2, "processors": [0, 1]},
        **{"batch": 16, "tests": [passed(0.9), passed(0.8), passed(0.7, p_value=0.2)]},
        **{"threshold": 0.8, "calibration": answers(3, 0), "evaluation": answers(3, 500)},
        **{"block_samples": 32, "rounds": rounds(0.1, 0.4, 0.2), "peak_rss_bytes": [1, 2, 3]},
    }
    return CascadeRecord(**{**fields, **changes})


def test_a_cascade_that_is_faster_and_keeps_the_accuracy_is_to_be_used() -> None:
    found = cascade_entry(record())
    assert msgspec.convert(found, Cascade) == found
    assert (found["verdict"], found["kept"], found["share"]) == ("use it", "kept", 0.75)
    assert found["over_large"]["ratio"] == pytest.approx(2.0, rel=0.02)
    assert found["over_small"]["ratio"] == pytest.approx(0.5, rel=0.02)
    assert found["both"]["samples_per_s"] == pytest.approx(160, rel=0.02)
    assert (found["against_large"]["lost"], found["against_small"]["gained"]) == (3, 100)
    assert found["chosen"]["share"] == 600 / SAMPLES
    assert found["sentence"].startswith("Use it: small answers 75 % of the samples, 2.0")
    assert found["sentence"].endswith("and it keeps the accuracy within 1 point.")


def test_a_small_model_that_keeps_the_accuracy_alone_needs_no_cascade() -> None:
    good = {**answers(3, 500), "small": [1] * 4 + [0] * (SAMPLES - 4)}
    found = cascade_entry(record(evaluation=good))
    assert (found["small_kept"], found["kept"], found["verdict"]) == ("kept", "kept", "small alone")
    assert found["sentence"].startswith("No cascade is needed: small alone keeps the accuracy")
    equal = cascade_entry(record(evaluation={**good, "labels": None}, agreement=0.99))
    assert (equal["small_kept"], equal["verdict"]) == ("kept", "small alone")


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"rounds": rounds(0.1, 0.4, 0.4)}, "no faster"),
        ({"evaluation": answers(60, 500)}, "accuracy dropped"),
        ({"evaluation": answers(18, 500)}, "accuracy undecided"),
        ({"threshold": 0.0, "tests": [passed(0.0)], "evaluation": answers(0, 0)}, "small alone"),
        ({"rounds": rounds(0.1, 0.4, 0.2, foreign=0.5)}, "disturbed"),
        ({"status": "failed", "reason": "killed", "evaluation": None, "rounds": []}, "failed"),
    ],
)
def test_anything_else_has_its_verdict(changes: dict[str, Any], verdict: str) -> None:
    found = cascade_entry(record(**changes))
    assert msgspec.convert(found, Cascade) == found
    assert found["verdict"] == verdict


def test_a_dropped_accuracy_is_explained_by_calibration_samples_that_were_easier() -> None:
    alike = {"calibration": answers(60, 0), "evaluation": answers(60, 500)}
    dropped = cascade_entry(record(**alike))
    assert dropped["sentence"].endswith("the cascade does not keep the accuracy within 1 point.")
    easy = {**answers(3, 500), "small": [1] * 20 + [0] * (SAMPLES - 20)}
    found = cascade_entry(record(calibration=easy, evaluation=answers(60, 500)))
    assert found["verdict"] == "accuracy dropped"
    assert "small is right on 99.0 % of the calibration samples and on 92.0 %" in found["sentence"]


@pytest.mark.parametrize(
    ("lost", "words"), [(0, "calibration.pool of at least 3"), (9, "(9 lost, 0 gained)")]
)
def test_without_a_threshold_the_large_model_is_alone_and_it_is_said_why(
    lost: int, words: str
) -> None:
    tests = [passed(0.99, lost=lost, p_value=0.3)]
    nothing = {"threshold": None, "evaluation": None, "rounds": [], "peak_rss_bytes": []}
    found = cascade_entry(record(tests=tests, **nothing))
    assert msgspec.convert(found, Cascade) == found
    assert (found["verdict"], found["share"]) == ("large alone", None)
    assert words in found["sentence"]


def under_traffic(foreign: float = 0.0) -> dict[str, Any]:
    """Three rounds, in which the cascade is twice as fast as the large model, half as the small."""
    rates = {"small": 400.0, "large": 100.0, "cascade": 200.0}
    facts = {"scenario": "offline", "valid": True, "foreign_cores": foreign}
    tests = [
        {"name": name, "round": number, "samples_per_s": rate * (1 + 0.01 * number), **facts}
        for number in range(1, 4)
        for name, rate in rates.items()
    ]
    plan = {"scenarios": ["offline"], "batch": 8, "seconds": 1.0, "p99_bound_s": 0.1}
    return {"plan": plan, "samples": SAMPLES, "tests": tests, "reason": None}


def test_under_traffic_gains_are_those_over_the_large_model() -> None:
    found = cascade_entry(record(traffic=under_traffic()))
    assert msgspec.convert(found, Cascade) == found
    assert found["traffic"] is not None
    rows = {row["served"]: row for row in found["traffic"]["rows"]}
    assert [*rows] == ["small", "large", "cascade"]
    assert rows["cascade"]["samples_per_s"] == pytest.approx(204.0)
    assert rows["cascade"]["gain"] == pytest.approx(2.0)
    assert (rows["large"]["gain"], rows["large"]["gain_low"]) == (1.0, None)
    assert rows["small"]["server_per_s"] is None


def test_traffic_that_failed_leaves_the_rounds_and_says_why() -> None:
    failed = {**under_traffic(), "tests": [], "reason": "killed above 2.0 GB"}
    found = cascade_entry(record(traffic=failed))
    assert msgspec.convert(found, Cascade) == found
    assert (found["status"], found["verdict"]) == ("ok", "use it")
    assert found["traffic"] is not None
    assert (found["traffic"]["rows"], found["traffic"]["reason"]) == ([], "killed above 2.0 GB")


def test_disturbed_traffic_gives_no_rates_and_says_why() -> None:
    made = record(traffic=under_traffic(foreign=0.9), busiest={"other": 0.9})
    assert why_traffic_was_disturbed(record()) is None
    assert "other" in (why_traffic_was_disturbed(made) or "")
    entry = cascade_entry(made)["traffic"]
    assert entry is not None
    assert all(row["samples_per_s"] is None and row["disturbed"] for row in entry["rows"])


def test_equal_answers_are_judged_without_labels() -> None:
    found = cascade_entry(record(agreement=0.99, evaluation=answers(3, 500, labels=False)))
    assert msgspec.convert(found, Cascade) == found
    assert (found["kept"], found["against_large"]) == ("kept", None)
    assert found["agreed"]["share"] == 1 - 3 / SAMPLES
    assert "it keeps 99 % of the answers" in found["sentence"]


def test_disturbed_rounds_count_where_that_is_accepted() -> None:
    made = rounds(0.1, 0.4, 0.2, count=FEWEST_ROUNDS - 1)
    own = record(rounds=made + rounds(0.1, 0.4, 0.2, count=9, foreign=0.5))
    assert cascade_entry(own)["over_large"] is None
    accepted = cascade_entry(own, accept_disturbed=True)
    assert accepted["provisional"]
    assert accepted["over_large"]["ratio"] == pytest.approx(2.0, rel=0.02)
