"""Families in the summary: planted rounds and answers."""

from typing import Any

import pytest
from families import EAGER, EQUAL, INT8, LARGE, TINY, family, known
from msgspec.structs import astuple
from raced import PLACE
from tightrope.plan.disturbed_records import any_ratio
from tightrope.summary.families import FamilyChoice, family_entry, member_verdict


def engines(entry: Any) -> dict[str, Any]:
    """The recommended engine of each model at the only shape."""
    (shape,) = entry.shapes
    return {one.model: one for one in shape.engines if one.role == "recommended"}


def test_members_are_a_tree_with_what_was_changed_and_models_of_no_family_are_not_in_it() -> None:
    entry = family_entry(family(), *known(wrong=EQUAL))
    assert (entry.root, entry.host, entry.status) == ("large", PLACE, "ok")
    members = [astuple(one) for one in entry.members]
    assert [one[:4] for one in members] == [
        ("large", None, {}, 400),
        ("small", "large", {"prune": {"layers": 3}}, 200),
        ("tiny", "small", {"activation": "relu", "train": {"epochs": 2}}, 100),
    ]
    failed = family(heats=[], status="failed", reason="fewer than two engines to compare")
    entry = family_entry(failed, *known(wrong=EQUAL))
    assert (entry.status, entry.reason, entry.shapes) == ("failed", failed.reason, [])


def test_speed_ups_come_from_shared_rounds_whatever_was_measured_in_other_minutes() -> None:
    entry = family_entry(family(), *known(wrong=EQUAL))
    tiny = engines(entry)["tiny"]
    ratios = {role: one.speedup for role, one in tiny.against.items()}
    others = ("root_recommended", "root_quantized", "parent_baseline", "parent_recommended")
    assert set(ratios) == {"root_baseline", *others}
    assert ratios["root_baseline"].ratio == pytest.approx(10, rel=0.02)
    assert ratios["root_recommended"].ratio == pytest.approx(4, rel=0.02)
    low, high = (getattr(ratios["parent_recommended"], end) for end in ("low", "high"))
    assert 1.9 < low < 2 < high < 2.1
    assert ratios["parent_baseline"] is None
    (shape,) = entry.shapes
    (baseline,) = [one for one in shape.engines if one.role == "baseline"]
    assert (baseline.model, baseline.variant, baseline.energy_j) == ("large", EAGER, 0.5)
    assert shape.fastest == FamilyChoice("tiny", INT8)
    own = "2.5 times as fast as its baseline, as accurate as its baseline: within the budget"
    assert engines(entry)["large"].verdict == own
    assert member_verdict("large", {}) is None


def test_accuracy_is_paired_with_the_root_and_the_parent_and_judges_the_verdict() -> None:
    entry = family_entry(family(), *known(wrong={**EQUAL, "small": 103, "tiny": 150}))
    small, tiny = engines(entry)["small"], engines(entry)["tiny"]
    against = small.against["root_baseline"].accuracy
    change = against.change
    assert (change.lost, against.flips, change.verdict) == (3, 3, "kept")
    assert change.delta == pytest.approx(-0.003)
    assert small.verdict == (
        "2 times as fast as the best of large, 0.3 points less accurate than large "
        f"({EAGER}): within the budget"
    )
    assert tiny.against["parent_baseline"].accuracy.change.delta == pytest.approx(-0.047)
    assert "5.0 points less accurate than large" in tiny.verdict
    assert tiny.verdict.endswith("outside the budget")
    assert entry.shapes[0].fastest == FamilyChoice("small", INT8)


def test_a_model_with_other_examples_has_no_change_but_the_reason_and_no_place_in_the_chart():
    entry = family_entry(family(), *known(wrong=EQUAL, data="other"))
    tiny = engines(entry)["tiny"]
    accuracy = tiny.against["root_baseline"].accuracy
    assert (accuracy.change, accuracy.reason) == (None, "evaluated on other examples")
    assert "not compared in accuracy with large" in tiny.verdict
    assert {one.model for one in entry.shapes[0].points} == {"large", "small"}
    # of what is not known to be within the budget nothing is the fastest
    assert entry.shapes[0].fastest == FamilyChoice("small", INT8)


def test_points_are_on_the_scale_of_the_shared_rounds_and_the_front_beats_all_others() -> None:
    entry = family_entry(family(), *known(wrong={"large": 90, "small": 95, "tiny": 200}))
    points = {(one.model, one.variant): one for one in entry.shapes[0].points}
    assert points["large", EAGER].call_s == pytest.approx(0.010, rel=0.1)
    assert points["small", INT8].call_s == pytest.approx(0.002, rel=0.1)
    # half as fast as its model's int8, which was measured in other minutes
    eager = points["small", EAGER]
    assert (eager.raced, eager.recommended) == (False, False)
    assert eager.call_s == pytest.approx(2 * points["small", INT8].call_s)
    front = [name for name, one in points.items() if one.front]
    assert front == [("tiny", INT8), ("small", INT8), ("large", INT8)]
    assert [one.front for one in entry.shapes[0].engines] == [True, True, True, False]


def test_disturbed_rounds_give_no_number_unless_they_are_accepted() -> None:
    record = family(disturbed=20)
    assert (any_ratio(record), any_ratio(family())) == (True, False)
    entry = family_entry(record, *known(wrong=EQUAL))
    (shape,) = entry.shapes
    assert "rounds are left" in shape.disturbed
    tiny = engines(entry)["tiny"]
    assert tiny.against["root_baseline"].speedup.verdict == "disturbed"
    assert (tiny.status, tiny.call_s) == ("failed", None)
    entry = family_entry(record, *known(wrong=EQUAL, accept=True))
    assert entry.shapes[0].provisional
    assert engines(entry)["tiny"].status == "ok"


def test_an_engine_that_died_and_a_model_without_one_are_there_with_the_reason() -> None:
    record = family(left_out={TINY: "killed"}, unraced={"small": f"{INT8}: out of memory"})
    record.roles[0].chosen = {"large": LARGE, "tiny": TINY}
    entry = family_entry(record, *known(wrong=EQUAL))
    reasons = {model: one.reason for model, one in engines(entry).items()}
    unraced = f"{INT8}: out of memory"
    assert reasons == {"large": None, "small": unraced, "tiny": f"{INT8}: killed"}
    assert entry.members[1].reason == unraced
