"""The section on families: a tree of models, a chart of all their variants, reasons."""

import json
import re
from typing import Any

import pytest
from families import EAGER, INT8, TINY, family, known
from msgspec.structs import replace
from report_pages import example, page, summary_of
from tightrope.report.sections.family import change_words, families_section, parameter_words
from tightrope.report.style.numbers import points
from tightrope.summary.document import Summary
from tightrope.summary.families import Family, family_entry


def entry(**changes: Any) -> Family:
    """The family of three models, the smallest of which lost its answers."""
    return family_entry(family(**changes), *known(wrong={"large": 100, "small": 104, "tiny": 150}))


def summary(*families: Family) -> Summary:
    return summary_of(example(families=families))


def test_rows_are_a_tree_and_the_roots_other_engines_stand_below_it() -> None:
    (family,) = families_section(summary(entry()))
    (shape,) = family["shapes"]
    assert [(row["model"], row["role"], row["depth"]) for row in shape["rows"]] == [
        ("large", "recommended", 0),
        ("large", "baseline", 0),
        ("small", "recommended", 1),
        ("tiny", "recommended", 2),
    ]
    small = shape["rows"][2]
    assert small["changes"] == ["3 layers"]
    assert (points(small["root"].change.delta), small["root"].flips) == ("\N{MINUS SIGN}0.4", 4)
    columns = ["parent_recommended", "root_baseline", "root_recommended"]
    assert list(shape["columns"]) == columns
    # a parent that is the root of all has no column of its own
    flat = entry()
    flat.members[2].parent = "large"
    (family,) = families_section(summary(flat))
    assert list(family["shapes"][0]["columns"]) == columns[1:]
    words = [parameter_words(one) for one in (None, 9_000, 22_700_000)]
    assert words == [None, "9,000", "22.7 M"]


def test_the_chart_links_each_parent_with_its_child() -> None:
    (family,) = families_section(summary(entry()))
    chart = family["shapes"][0]["figure"]["chart"]
    drawn, description = json.dumps(chart), chart["description"]
    assert '"latency_ms_child": 1.98' in drawn
    assert drawn.count('"delta_child": ') == 2
    assert "of 5 variants at batch" in description
    assert f"small {INT8} (1.98 ms" in description
    assert EAGER not in description


def test_the_page_has_the_tree_the_verdicts_and_the_reasons() -> None:
    failed = replace(entry(), status="failed", reason="fewer than two engines", shapes=[])
    found = page(families=[entry(left_out={TINY: "out of <memory>"}), failed])
    assert '<a href="#family">Smaller models</a>' in found.html
    assert "Fastest within the budget: <strong>small</strong>" in found.html
    section = found.section("family")
    assert "2 times as fast as the best of large" in section
    assert "out of &lt;memory&gt;" in section
    assert re.findall(r'<li style="--depth: (\d)"', section)[:3] == ["0", "1", "2"]
    assert "\N{MINUS SIGN}0.9 to +0.1" in section
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
    ],
)
def test_changes_are_told_in_words(changes: dict[str, Any], words: Any) -> None:
    assert change_words(changes) == (words.split("|") if words else [])
