"""The goal in the report: one sentence, and what each variant costs."""

import json
from pathlib import Path
from typing import Any

import pytest
from page_parts import PARTS
from tightrope.report.page import render_page
from tightrope.report.sections.decision import goal_section

EXAMPLE = Path(__file__).parents[3] / "data/summary.json"
MODEL, VARIANT = "minilm-docstrings", "cpu-openvino-bf16"
SHAPE = {"batch": 1, "sequence": 64}
SENTENCE = f"For the least memory at batch 1, sequence 64: {VARIANT}, 300 MB"


def decision(host: str, **changes: Any) -> dict[str, Any]:
    return {
        **{"model": MODEL, "host": host, "shape": SHAPE, "traffic": None, "padding": None},
        **{"variant": VARIANT, "value": 300.0, "unit": "MB", "sentence": SENTENCE},
        **{"provisional": False, "bounds": [], "nearest": None},
        "rejected": [{"variant": "cpu-pytorch-fp32", "reason": "more memory"}],
        **changes,
    }


def cost(host: str, **changes: Any) -> dict[str, Any]:
    return {
        **{"model": MODEL, "variant": VARIANT, "host": host, "shape": SHAPE},
        **{"inferences_per_s": 500.0, "price_per_hour": 0.18, "cost_per_million": 0.1},
        **{"prepare_s": 20.0, "build_s": 60.0, "search_s": None, "spent_s": 80.0},
        **{"saved_s": 0.003, "break_even_inferences": 20000.0, "break_even_at_most": None},
        **changes,
    }


def page(folder: Path, **fields: Any) -> str:
    document = json.loads(EXAMPLE.read_text())
    (host,) = document["hosts"]
    for name, entries in fields.items():
        document[name] = [{**one, "host": host} for one in entries]
    if "goals" in fields:
        document["recommendations"][0] |= {"variant": VARIANT, "why": SENTENCE}
    (folder / "summary.json").write_text(json.dumps(document))
    render_page(folder / "summary.json", folder / "summary.html", **PARTS)
    return " ".join((folder / "summary.html").read_text().split())


def test_the_page_says_the_goal_in_one_sentence(tmp_path: Path) -> None:
    text = page(tmp_path, goals=[decision("h")])
    assert text.count(SENTENCE) == 1
    assert "the choice for the goal" in text
    assert f'Deploy <code class="variant">{VARIANT}</code> for the goal.' in text


def test_the_page_says_that_nothing_meets_the_goal(tmp_path: Path) -> None:
    assert "No variant meets the goal" in page(tmp_path, goals=[decision("h", variant=None)])


def test_the_page_has_cost_and_break_even_of_each_variant(tmp_path: Path) -> None:
    text = page(tmp_path, costs=[cost("h")])
    assert "Cost and break-even of each variant" in text
    assert '<td class="number">20,000</td>' in text and '<td class="number">0.100</td>' in text
    without = page(tmp_path, costs=[cost("h", cost_per_million=None)])
    assert "Break-even of each variant" in without and "Cost per million" not in without


def test_a_page_without_a_goal_has_nothing_of_it(tmp_path: Path) -> None:
    text = page(tmp_path)
    assert 'class="goal"' not in text and "Break-even" not in text


def test_a_break_even_has_the_seconds_that_are_paid(tmp_path: Path) -> None:
    section = goal_section({"costs": [cost("h", spent_s=120.0)]}, MODEL, {})
    assert section is not None
    assert section["costs"][0]["spent_s"] == "120"
    text = page(tmp_path, costs=[cost("h", prepare_s=None, spent_s=None)])
    assert "Calibrated and built in, s" in text and "a job before its build was not timed" in text


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        ({"saved_s": -0.001}, "never: nothing is saved"),
        ({"saved_s": None}, "not compared"),
        ({"spent_s": None}, "a job before its build was not timed"),
    ],
)
def test_a_break_even_that_is_not_known_says_why(known: dict[str, Any], reason: str) -> None:
    row = cost("h", break_even_inferences=None, **known)
    section = goal_section({"costs": [row]}, MODEL, {})
    assert section is not None
    assert section["costs"][0]["no_break_even"] == reason


@pytest.mark.parametrize("shape", [SHAPE, None])
def test_reasons_stand_with_the_recommendation_or_under_traffic_with_the_goal(shape: Any) -> None:
    section = goal_section({"goals": [decision("h", shape=shape)]}, MODEL, {})
    assert section is not None
    assert section["decisions"][0]["rejected_count"] == int(shape is None)
