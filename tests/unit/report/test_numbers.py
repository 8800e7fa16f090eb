"""How values are written: no more digits than were measured, and no format in a text."""

import math

import pytest
from tightrope.report.style.marks import code_span, plain_text
from tightrope.report.style.numbers import (
    bounded,
    executed,
    gain,
    megabytes,
    milliseconds,
    mostly_elsewhere,
    points,
    points_interval,
    points_up,
    products,
    ratio,
    ratio_interval,
    shape_label,
    shape_of,
    significant,
)

MINUS, TIMES, DOT = "\N{MINUS SIGN}", "\N{MULTIPLICATION SIGN}", "\N{MIDDLE DOT}"
NARROW, WIDE = {"ratio": 4.18, "low": 4.02, "high": 4.35}, {"ratio": 4, "low": 3, "high": 6}
COUNTS = {"MatMul": {"int8": 36, "fp32": 14}, "Softmax": {"fp32": 90}}


def label(**row):
    return shape_label(shape_of(row)).replace("\xa0", " ")


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (significant(0), "0"),
        (significant(9.996), "10.0"),
        (significant(999.6), "1,000"),
        (significant(12345), "12,300"),
        (milliseconds(0.0098), "9.80"),
        (milliseconds(None), None),
        (megabytes(math.nan), None),
        (gain(2.314), f"2.3{TIMES}"),
        (gain(0.967), f"0.97{TIMES}"),
        (gain(None), None),
        # signed, and no finer than the samples
        (points(-0.0123, 1500), f"{MINUS}1.2"),
        (points(-0.0123, 20_000), f"{MINUS}1.23"),
        (points(0.02, 50), "+2"),
        (points(-0.0001, 1500), "0.0"),
        (points_interval({"delta_low": -0.01, "delta_high": 0.002}), f"{MINUS}1.0 to +0.2"),
        (points_interval(None), None),
        # rounded up
        (points_up(0.01001, 1500), "1.1"),
        (points_up(0.003, 50), "1"),
        (points_up(None), None),
        # below its floor
        (bounded(4.7e-11, 0.001), "<\xa00.001"),
        (bounded(0.00712, 0.01, 100), "0.71"),
        (bounded(1e-7, 0.01, 100), "<\xa00.01"),
        (bounded(0, 0.01), "0"),
        (bounded(None, 0.01), None),
        # a wide interval costs a decimal
        (ratio(NARROW), f"4.18{TIMES}"),
        (ratio_interval(NARROW), "4.02 to 4.35"),
        (ratio(WIDE), f"4.0{TIMES}"),
        (ratio_interval(WIDE), "3.0 to 6.0"),
        (ratio(None), None),
        (products(COUNTS, "int8"), "int8 in 36 of 50"),
        (products(COUNTS, "int8-bf16"), "int8 in 36 of 50"),
        (products(None, "int8"), None),
        (executed(COUNTS), "fp32 104, int8 36"),
        (executed(None), None),
        (label(batch=16, sequence=128, p50_s=1), f"batch 16 {DOT} 128 tokens"),
        (label(batch=16, sequence=128, tokens=64), f"batch 16 {DOT} 64 of 128 tokens"),
        (label(batch=1, height=64, width=32), f"batch 1 {DOT} 64 {TIMES} 32 pixels"),
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


def test_a_variant_with_few_products_in_its_precision_is_marked():
    assert [mostly_elsewhere(COUNTS, one) for one in ("int8", "fp32")] == [False, True]
    assert not mostly_elsewhere(None, "int8")
