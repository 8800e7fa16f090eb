"""The table of summary.csv: its columns, and the numbers in them."""

from typing import Any

import pandas
import pytest
from tightrope.summary.table import parted, table

ROWS: list[dict[str, Any]] = [
    {"name": 'a "quoted", ä', "status": None, "speedup": None, "kl": 0, "calls": 2.0},
    {"name": "b\nc", "status": "ok", "speedup": {"ratio": 1e-07, "low": {"x": 1}}, "kl": 0.1},
    {"name": "d", "status": True, "more": 2**40, "kl": -1, "calls": 3},
]


def flattened(entry: dict[str, Any]) -> dict[str, Any]:
    """The columns of a row."""
    flat, nested = parted(entry)
    return flat | nested


def test_the_columns_are_those_of_all_rows_as_they_first_occur_nested_ones_last() -> None:
    frame = pandas.json_normalize(ROWS[:2]).convert_dtypes()
    assert table([flattened(row) for row in ROWS[:2]]) == frame.to_csv(index=False)
    lines = table([flattened(row) for row in ROWS]).split("\n")
    assert lines[0] == "name,status,speedup,kl,calls,speedup.ratio,speedup.low.x,more"
    assert lines[-2:] == ["d,True,,-1.0,3,,,1099511627776", ""]


@pytest.mark.parametrize(
    ("values", "cells"),
    [
        ([0, 0.5, None], ["0.0", "0.5", ""]),
        ([2.0, 3, None], ["2", "3", ""]),
        ([None, 7], ["", "7"]),
        ([1e-07, 1e22, 123456789.125], ["1e-07", "1e+22", "123456789.125"]),
        ([True, False, None], ["True", "False", ""]),
    ],
)
def test_numbers_among_fractions_are_fractions_unless_all_are_whole(values, cells):
    rows = [{"first": "x", "second": value} for value in values]
    assert table(rows) == "first,second\n" + "".join(f"x,{cell}\n" for cell in cells)
