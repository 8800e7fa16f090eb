"""Markdown of what files say."""

import pytest
from tightrope.report.style.marks import code_span, plain_text


def test_a_code_span_has_no_end_of_its_own() -> None:
    assert code_span("a`b|c\nd") == r"`a'b\|c\nd`"
    assert code_span(" ") == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>x</script>", r"\<script\>x\</script\>"),
        ("[a](javascript:b)", r"\[a\](javascript:b)"),
        ("a|b\n**c** `d` \x1b[31m", r"a\|b\\n\*\*c\*\* \`d\` \\x1b\[31m"),
        ("0.33 times (0.27 to 0.40)", "0.33 times (0.27 to 0.40)"),
    ],
)
def test_plain_text_is_no_format(text: str, shown: str) -> None:
    assert plain_text(text) == shown
