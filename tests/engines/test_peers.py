"""What benchmarks/peers gives other tools of the data."""

import sys
from pathlib import Path

import pytest
from tiny_model import LONGEST, SAMPLES, TinyModel

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks/peers"))

from source import Source, read_examples


def test_a_part_of_the_split_calibrates_all_of_it_judges_and_too_few_texts_are_refused(
    tiny: TinyModel,
) -> None:
    examples = read_examples(tiny.split("calibration"), SAMPLES)
    source = Source(tiny.checkpoint.parent, tiny.simplified, examples, SAMPLES, LONGEST)
    assert len(source.texts) == SAMPLES < len(source.examples)
    assert source.texts == [example["text"] for example in source.examples[:SAMPLES]]
    with pytest.raises(ValueError, match="has 40 examples, 41 are asked for: --samples fewer"):
        read_examples(tiny.split("calibration"), 41)
