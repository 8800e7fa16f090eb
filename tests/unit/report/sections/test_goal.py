"""The goal in the report: one sentence, and what each variant costs."""

from typing import Any

from msgspec.structs import replace
from raced import SHAPE
from report_pages import HOST, MODEL, Outline, example, page_of
from tightrope.decide.bounds import Cost
from tightrope.decide.goal import GoalDecision
from tightrope.decide.recommend import Rejected
from tightrope.decide.result import Reason

VARIANT = "cpu-openvino-bf16"
SENTENCE = f"For the least memory at batch 1, sequence 64: {VARIANT}, 300 MB"


def decision(**changes: Any) -> GoalDecision:
    known = {"variant": VARIANT, "value": 300.0, "unit": "MB", "pace": None}
    known |= {"provisional": False, "bounds": [], "nearest": None}
    known["rejected"] = [Rejected("cpu-pytorch-fp32", Reason.of("not_chosen"))]
    found = GoalDecision(MODEL, HOST, SHAPE, traffic=None, padding=None, **known)
    return replace(found, **changes)


def cost(**changes: Any) -> Cost:
    known = {"inferences_per_s": 500.0, "price_per_hour": 0.18, "cost_per_million": 0.1}
    known |= {"prepare_s": 20.0, "build_s": 60.0, "search_s": None, "spent_s": 80.0}
    known |= {"saved_s": 0.003, "break_even_inferences": 20000.0, "break_even_at_most": None}
    return Cost(MODEL, VARIANT, HOST, SHAPE, **{**known, **changes})


def page(**fields: Any) -> Outline:
    document = example(**fields)
    if "goals" in fields:
        document["recommendations"][0] |= {"variant": VARIANT, "why": {"code": "goal"}}
        document["goal"] = {"minimize": "memory"}
    return page_of(document)


def test_the_page_says_the_goal_in_one_sentence() -> None:
    text = " ".join(page(goals=[decision()]).html.split())
    assert text.count(SENTENCE) == 1
    assert "the choice for the goal" in text
    assert f'Deploy <code class="variant">{VARIANT}</code> for the goal.' in text
    assert "No variant is known to meet the goal" in page(goals=[decision(variant=None)]).html


def test_the_page_has_cost_and_break_even_of_each_variant() -> None:
    text = page(costs=[cost()]).html
    assert "Cost and break-even of each variant" in text
    assert '<td class="number">20,000</td>' in text and '<td class="number">0.100</td>' in text
    unknown = cost(cost_per_million=None, prepare_s=None, spent_s=None)
    without = page(costs=[unknown]).html
    assert "Break-even of each variant" in without and "Cost per million" not in without
    assert "Calibrated and built in, s" in without
    assert '<td class="number">120</td>' in page(costs=[cost(spent_s=120.0)]).html


def test_a_break_even_that_is_not_known_says_why() -> None:
    unknown = ({"saved_s": -0.001}, {"saved_s": None}, {"spent_s": None})
    rows = [cost(break_even_inferences=None, **one) for one in unknown]
    text = page(costs=rows).text
    table = text[text.index("Break-even after") : text.index("Better is up")]
    for reason in ("never: nothing is saved", "not compared", "a job before its build was not"):
        assert reason in table
    # reasons stand with the recommendation, or under traffic with the goal
    before = page_of(example()).text.count("Why not the other")
    for shape, more in ((SHAPE, 0), (None, 1)):
        found = page(goals=[decision(shape=shape)]).text
        assert found.count("Why not the other") == before + more
    assert "Why not the other 1" in found
