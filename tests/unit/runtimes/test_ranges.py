"""Exports for a range of shapes take every shape of it, and no other."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tiny_model import TinyModel

SCRIPT = Path(__file__).parents[2] / "support/exports_within.py"
Sizes = tuple[int, ...]


def differences(model: TinyModel, profile: list[Sizes], shapes: list[Sizes]) -> list[Any]:
    """Largest difference of the exported program's logits per shape, or its error."""
    asked = {"checkpoint": str(model.checkpoint), "profile": profile, "shapes": shapes}
    words = [sys.executable, SCRIPT, json.dumps(asked)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("tuned", [(16, 64), (16, 16), (1, 64)])
def test_texts_of_every_shape_of_the_profile_have_the_logits_of_the_module(
    tiny: TinyModel, tuned: Sizes
) -> None:
    profile, shapes = [(1, 1), tuned, (16, 64)], [(1, 1), (1, 64), (3, 5), (16, 64)]
    assert differences(tiny, profile, shapes) == pytest.approx([0, 0, 0, 0], abs=1e-5)


def test_a_shape_beyond_the_profile_is_refused(tiny: TinyModel) -> None:
    (error,) = differences(tiny, [(1, 1), (4, 32), (4, 64)], [(5, 32)])
    assert "input_ids.size()[0] <= 4" in str(error)


def test_an_axis_of_one_size_is_fixed(tiny: TinyModel) -> None:
    first, second = differences(tiny, [(1, 1), (1, 32), (1, 64)], [(1, 7), (2, 7)])
    assert first == pytest.approx(0, abs=1e-5)
    assert "size" in str(second)


def test_images_have_a_free_batch_alone(tiny_images: TinyModel) -> None:
    shapes: list[Sizes] = [(1,), (3,), (8,)]
    found = differences(tiny_images, [(1,), (1,), (8,)], shapes)
    assert found == pytest.approx([0, 0, 0], abs=1e-5)
