"""The section on families: a tree of models, a chart of all their variants, reasons."""

import json
import re
from copy import deepcopy
from typing import Any

import altair as alt
import pytest
from report_pages import page
from tightrope.report.sections.family import change_words, families_section, parameter_words

EAGER, INT8 = "cpu-pytorch-fp32", "cpu-openvino-int8-nncf-8"
FASTER = {"ratio": 2.0, "low": 1.9, "high": 2.1, "verdict": "faster"}
LESS = {
    **{"delta": -0.004, "delta_low": -0.008, "delta_high": 0.0, "p_value": 0.02},
    **{"verdict": "kept", "flips": 7, "reason": None},
}


def comparison(model: str, **changes: Any) -> dict[str, Any]:
    return {"model": model, "variant": EAGER, "speedup": FASTER, "accuracy": LESS, **changes}


def engine(model: str, seconds: float | None, **changes: Any) -> dict[str, Any]:
    known = {"model": model, "variant": INT8, "role": "recommended", "status": "ok", "reason": None}
    times = {"size_bytes": 10**6, "energy_j": None, "call_s": seconds, "low": None, "high": None}
    others = {"top1": 0.9, "samples": 1000, "front": True, "against": {}, "verdict": f"of {model}"}
    return {**known, **times, **others, **changes}


def point(model: str, seconds: float, delta: float, **changes: Any) -> dict[str, Any]:
    own = {"model": model, "variant": INT8, "recommended": True, "raced": True, "front": True}
    times = {"call_s": seconds, "low": 0.9 * seconds, "high": 1.1 * seconds}
    accuracy = {"delta": delta, "delta_low": delta - 0.01, "delta_high": delta + 0.01}
    return {**own, **times, **accuracy, **changes}


def member(model: str, parent: str | None, **changes: Any) -> dict[str, Any]:
    known = {"model": model, "parent": parent, "changes": {}, "parameters": 2_000_000}
    return {**known, "reason": None, **changes}


ABOVE = comparison("large", variant=INT8)
TO_BOTH = {"root_baseline": comparison("large"), "root_recommended": comparison("large")}
LOST = {"variant": None, "verdict": None, "status": "failed", "reason": "out of <memory>"}
FAMILY: dict[str, Any] = {
    **{"root": "large", "host": "a", "device": "cpu", "status": "ok", "reason": None},
    "measured": "2026-11-25T12:00:00+00:00",
    "members": [
        member("large", None),
        member("small", "large", changes={"prune": {"layers": 3}}),
        member("tiny", "small"),
    ],
    "shapes": [
        {
            "shape": {"batch": 1, "sequence": 64},
            "fastest": {"model": "small", "variant": INT8},
            **{"rounds": 20, "stop": "precise", "disturbed": None, "provisional": False},
            "engines": [
                engine("large", 0.004),
                engine("small", 0.002, against={**TO_BOTH, "parent_recommended": ABOVE}),
                engine("tiny", None, **LOST),
                engine("large", 0.01, role="baseline", variant=EAGER, verdict=None, front=False),
            ],
            "points": [
                point("small", 0.002, -0.004),
                point("large", 0.004, 0.0),
                point("large", 0.01, 0.0, variant=EAGER, recommended=False, front=False),
            ],
        }
    ],
}


def summary(*families: dict[str, Any]) -> dict[str, Any]:
    return {"families": list(families), "accuracy_budget_points": 1.0}


def test_rows_are_a_tree_and_the_roots_other_engines_stand_below_it() -> None:
    (family,) = families_section(summary(FAMILY), {})
    (shape,) = family["shapes"]
    assert [(row["model"], row["role"], row["depth"]) for row in shape["rows"]] == [
        ("large", "recommended", 0),
        ("large", "baseline", 0),
        ("small", "recommended", 1),
        ("tiny", "recommended", 2),
    ]
    small = shape["rows"][2]
    assert small["changes"] == ["3 layers"]
    assert (small["root"]["change"], small["root"]["flips"]) == ("\N{MINUS SIGN}0.4", 7)
    assert small["root"]["interval"] == "\N{MINUS SIGN}0.8 to 0.0"
    columns = ["parent_recommended", "root_baseline", "root_recommended"]
    assert list(shape["columns"]) == columns
    # a parent that is the root of all has no column of its own
    flat = deepcopy(FAMILY)
    flat["members"][2]["parent"] = "large"
    (family,) = families_section(summary(flat), {})
    assert list(family["shapes"][0]["columns"]) == columns[1:]
    words = [parameter_words(one) for one in (None, 9_000, 22_700_000)]
    assert words == [None, "9,000", "22.7 M"]


def test_the_chart_links_each_parent_with_its_child_and_is_valid() -> None:
    (family,) = families_section(summary(FAMILY), {})
    (figure,) = family["figures"]
    alt.Chart.from_dict(figure["chart"], validate=True)
    drawn = json.dumps(figure["chart"])
    assert '"latency_ms_child": 2.0' in drawn
    assert drawn.count('"delta_child": ') == 1
    assert "of 3 variants at batch" in figure["description"]
    assert f"small {INT8} (2.00 ms" in figure["description"]
    assert EAGER not in figure["description"]


def test_the_page_has_the_tree_the_verdicts_and_the_reasons() -> None:
    failed = {**FAMILY, "status": "failed", "reason": "fewer than two engines", "shapes": []}
    found = page(families=[FAMILY, failed])
    assert '<a href="#family">Smaller models</a>' in found.html
    assert "Fastest within the budget: <strong>small</strong>" in found.html
    section = found.section("family")
    assert "of small" in section and "out of &lt;memory&gt;" in section
    assert re.findall(r'<li style="--depth: (\d)"', section)[:3] == ["0", "1", "2"]
    assert "Not timed together: fewer than two engines." in section


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, []),
        ({"prune": {"layers": [0, 2], "intermediate": 64}}, "layers 0, 2|64 neurons per layer"),
        (
            {"prune": {"blocks": [[0], [0, 2]], "intermediate": 64}},
            "1 + 2 blocks|64 neurons per block of the first stage",
        ),
        ({"prune": {"heads": 2, "tails": 2}}, "2 attention heads per layer|prune tails 2"),
        (
            {"prune": {"layers": [1], "target": {"asked": {"speedup": 2.0}, "short_by": 0.0}}},
            "layers 1|chosen for a speed-up of 2.0\N{MULTIPLICATION SIGN}",
        ),
        (
            {"prune": {"target": {"asked": {"parameters": 20_000_000}}}},
            "chosen for at most 20.0 M parameters",
        ),
        ({"train": {"epochs": 3, "sparsity": 0.8}}, "trained 3 epochs|80 % of the weights zero"),
        ({"activation": "relu", "train": {"epochs": 1}}, "activation relu|trained 1 epoch"),
        ({"distill": {"from": "large", "temperature": 2}}, "distilled from large"),
        ({"qat": {"scheme": "s8s8", "outputs": True}}, "trained for s8s8, outputs too"),
        ({"other": {"steps": 9}, "another": True}, "other: steps 9|another"),
    ],
)
def test_changes_are_told_in_words(changes: dict[str, Any], words: Any) -> None:
    assert change_words(changes) == (words.split("|") if words else [])
