import pytest
from tightrope.summary.accuracy import truncation_words

CUT = {"texts": 1500, "truncated": 37, "max_sequence": 128}


@pytest.mark.parametrize(
    ("splits", "expected"),
    [
        ({}, None),
        ({"evaluation": {**CUT, "truncated": 0}}, None),
        ({"evaluation": CUT}, "37 of 1,500 evaluation texts were cut at max_sequence = 128 tokens"),
        (
            {"evaluation": {"texts": 1, "truncated": 1, "max_sequence": 8}},
            "1 of 1 evaluation text was cut at max_sequence = 8 tokens",
        ),
        (
            {
                "evaluation": CUT,
                "calibration": {**CUT, "truncated": 0},
                "train": {"texts": 5500, "truncated": 1200, "max_sequence": 64},
            },
            "37 of 1,500 evaluation texts were cut at max_sequence = 128 tokens; "
            "1,200 of 5,500 train texts were cut at train.sequence = 64 tokens",
        ),
    ],
)
def test_the_texts_that_were_cut_are_told_per_split(splits, expected):
    assert truncation_words(splits) == expected
