"""How values are written: no more digits than were measured, and no format in a text."""

import pytest
from tightrope.decide.result import Ratio, Shape
from tightrope.report.style.marks import code_span, plain_text
from tightrope.report.style.numbers import (
    bounded,
    executed,
    executed_otherwise,
    gain,
    megabytes,
    milliseconds,
    points,
    points_up,
    products,
    ratio,
    ratio_interval,
    shape_label,
    significant,
)
from tightrope.statistics import Interval

MINUS, TIMES, DOT = "\N{MINUS SIGN}", "\N{MULTIPLICATION SIGN}", "\N{MIDDLE DOT}"
WIDE = Ratio.of(Interval(4, 3, 6))
COUNTS = {"MatMul": {"int8": 36, "fp32": 14}, "Softmax": {"fp32": 90}}


def label(**row):
    return shape_label(Shape(**row)).replace("\xa0", " ")


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (significant(9.996), "10.0"),
        (significant(999.6), "1,000"),
        (milliseconds(None), None),
        (megabytes(None), None),
        (gain(0.967), f"0.97{TIMES}"),
        # signed, and no finer than the samples
        (points(-0.0123, 20_000), f"{MINUS}1.23"),
        (points(0.02, 50), "+2"),
        (points(-0.0001, 1500), "0.0"),
        # rounded up
        (points_up(0.01001, 1500), "1.1"),
        (points_up(0.003, 50), "1"),
        # below its floor
        (bounded(4.7e-11, 0.001), "<\xa00.001"),
        (bounded(0.00712, 0.01, 100), "0.71"),
        (bounded(0, 0.01), "0"),
        # a wide interval costs a decimal
        (ratio(WIDE), f"4.0{TIMES}"),
        (ratio_interval(WIDE), "3.0 to 6.0"),
        (products(COUNTS, "int8"), "int8 in 36 of 50"),
        (executed(COUNTS), "fp32 104, int8 36"),
        (label(batch=16, sequence=128, tokens=64), f"batch 16 {DOT} 64 of 128 tokens"),
        # few products in its precision
        *((executed_otherwise(counts, "int8"), None) for counts in (COUNTS, None)),
        (executed_otherwise(COUNTS, "fp32"), "mostly in another precision"),
        (executed_otherwise({"gemm": {"fp16": 9, "Float9": 1}}, "fp16"), "types unknown: Float9"),
        # in Markdown
        (code_span("a`b|c\nd"), r"`a'b\|c\nd`"),
        (code_span(" "), ""),
        (plain_text("<script>x</script>"), r"\<script\>x\</script\>"),
        (plain_text("[a](javascript:b)"), r"\[a\](javascript:b)"),
        (plain_text("a|b\n**c** `d` \x1b[31m"), r"a\|b\\n\*\*c\*\* \`d\` \\x1b\[31m"),
        (plain_text("0.33 times (0.27 to 0.40)"), "0.33 times (0.27 to 0.40)"),
    ],
)
def test_a_value_is_written_as(written, text):
    assert written == text
