"""The table of first calls after a pause, and the remark in the table of all results."""

from typing import Any

from report_pages import MEASURED, page
from tightrope.report.sections.requested import idleness_words
from tightrope.report.style.numbers import TIMES


def pause(pause_s: float, ratio: float | None, **changes: Any) -> dict[str, Any]:
    slowdown = ratio and {
        **{"ratio": ratio, "low": ratio - 0.05, "high": ratio + 0.05},
        "matters": ratio > 1.15,
    }
    return {
        **{"pause_s": pause_s, "calls": 15, "disturbed_calls": 0, "slowdown": slowdown},
        "first_call_s": ratio and 0.004 * ratio,
        **{"reason": None, "disturbed": None, "provisional": False},
        **changes,
    }


def entry(*pauses: dict[str, Any], **changes: Any) -> dict[str, Any]:
    own = {"variant": "cpu-onnxruntime-fp32", "shape": {"batch": 1, "sequence": 64}}
    own |= {"back_to_back_s": 0.004, "spent_s": 60.0, "pauses": list(pauses)}
    return {**MEASURED, **own, **changes}


SLOW = entry(pause(0.1, 1.02), pause(1, 1.5), pause(10, 2.25))


def test_only_pauses_that_matter_are_told() -> None:
    first, second = idleness_words(SLOW)
    assert first == (
        f"after 1 s without a call the next one takes 1.50{TIMES} (1.45 to 1.55) of one back to "
        "back: 6.00 ms"
    )
    assert second.startswith("after 10 s")
    assert idleness_words(entry(pause(1, 1.1), pause(10, None, reason="only 2 calls"))) == []
    assert idleness_words(entry(pause(1, 1.5, disturbed="a compiler", provisional=True))) == []


def test_the_page_has_the_table_and_a_remark_where_it_matters() -> None:
    lost = "other programs used up to 0.5 cores of its processors in pauses of 10 s"
    quiet = entry(pause(1, 1.02), pause(10, None, disturbed=lost), variant="cpu-openvino-bf16")
    found = page(idleness=[SLOW, quiet, entry(status="failed", reason="no room")])
    section, results = found.section("idleness"), found.section("results")
    text = found.text.replace("\xa0", " ")
    for cells in (
        f"4.00 0.1 s 4.08 1.02{TIMES} 0.97 to 1.07 15",
        f"4.00 1 s 6.00 1.50{TIMES} 1.45",
    ):
        assert f"64 tokens {cells}" in text
    assert section.count("<tr>") == 6
    for words in ("0.1 s", ">4.00<", ">6.00<", f"1.50{TIMES}", "1.45 to 1.55"):
        assert words in section
    assert lost in section and "1 length of pauses" in found.html
    assert section.count('<span class="verdict slower">') == 2
    assert "no room" in section
    assert results.count("after 10 s without a call") == results.count("without a call") / 2 == 1
    assert '<span class="status">pauses</span>' in results
    assert 'First calls after a pause</a>: <span class="bad">1' in found.section("not-run")
