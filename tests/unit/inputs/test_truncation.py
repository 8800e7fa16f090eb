"""Texts that are cut at `max_sequence` tokens are counted where they are encoded."""

import numpy as np
import pytest
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.inputs.texts import truncation_of
from tiny_model import LONGEST, TinyModel


@pytest.mark.parametrize("max_sequence", [8, 20, LONGEST])
def test_the_texts_that_are_longer_are_counted(tiny: TinyModel, max_sequence: int) -> None:
    examples = read_split(tiny.split("evaluation"))
    whole = load_encoder(tiny.checkpoint, max_sequence=LONGEST)(examples)
    longer = sum(len(row["input_ids"]) > max_sequence for row in whole)
    rows = load_encoder(tiny.checkpoint, max_sequence=max_sequence)(examples)
    assert truncation_of(rows) == {
        "texts": len(examples),
        "truncated": longer,
        "max_sequence": max_sequence,
    }
    assert (longer > 0) is (max_sequence < LONGEST)


def test_random_inputs_are_never_cut(tiny: TinyModel) -> None:
    rows = load_encoder(tiny.checkpoint, max_sequence=8)([{"random": seed} for seed in range(9)])
    assert truncation_of(rows) == {"texts": 9, "truncated": 0, "max_sequence": 8}


def test_images_are_not_cut() -> None:
    assert truncation_of([{"pixel_values": np.zeros((3, 8, 8), np.float32)}]) is None
