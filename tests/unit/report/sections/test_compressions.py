"""The section on searches for a smaller model."""

import json
from pathlib import Path
from typing import Any

from artifact_files import written
from page_parts import PARTS
from tightrope.report.page import render_page
from tightrope.report.style.numbers import TIMES
from tightrope.summary.compressions import compression_entries

EXAMPLE = Path(__file__).parents[3] / "data/summary.json"
RUNG: dict[str, Any] = {
    **{"factor": 1.0, "structure": {"depths": [6], "width": 1536}, "prune": {}},
    **{"parameters": 22_715_141, "seconds": 90.0, "reason": None},
    **{"delta": 0.001, "delta_low": -0.004, "delta_high": 0.006},
    **{"speedup": 6.0, "speedup_low": 5.9, "speedup_high": 6.1},
}
LAST = {**RUNG, "factor": 2.0, "delta": -0.02, "structure": {"depths": [3], "width": 1536}}
PATH: dict[str, Any] = {
    "target": {
        "asked": {"speedup": 10.0, "variant": "cpu-onnxruntime-int8-minmax-512", "shape": {}},
        "reached": {"speedup": 6.0},
        "short_by": 10 / 6 - 1,
    },
    **{"budget": 0.01, "ended": "budget exceeded", "rungs": [RUNG, LAST], "chosen": 1.0},
}


def section(folder: Path, path: dict[str, Any]) -> str:
    """The section of the page of the example summary with this search, empty without one."""
    file = folder / "fast" / "compression.json"
    file.parent.mkdir(parents=True)
    written(file, path)
    document = json.loads(EXAMPLE.read_text()) | {"compressions": compression_entries([file])}
    (folder / "summary.json").write_text(json.dumps(document))
    render_page(folder / "summary.json", folder / "summary.html", **PARTS)
    page = (folder / "summary.html").read_text()
    begin = page.index('<section id="compressions">')
    assert 'href="#compressions"' in page
    return page[begin : page.index("</section>", begin)]


def test_it_says_what_was_asked_what_was_reached_and_why_it_ended(tmp_path: Path) -> None:
    text = section(tmp_path, PATH)
    assert f"Asked: 10{TIMES} the speed of the baseline of its parent within 1 points." in text
    assert f"Reached: 6.00{TIMES}, 67 % short of it. The last model exceeds the budget" in text
    assert text.count('<tr><th scope="row">') == 2
    assert text.count("<strong>chosen</strong>") == 1
    assert "5.90 to 6.10" in text


def test_without_a_model_within_the_budget_and_with_one_that_was_not_built(tmp_path: Path) -> None:
    none = {name: None for name in RUNG if name.startswith(("delta", "speedup"))}
    failed = {**RUNG, **none, "reason": "<no> room"}
    target = {**PATH["target"], "reached": {"speedup": None}, "short_by": None}
    changes = {"rungs": [failed], "chosen": None, "ended": "not built", "target": target}
    text = section(tmp_path, {**PATH, **changes})
    assert "No model is within the budget" in text
    assert "&lt;no&gt; room" in text
