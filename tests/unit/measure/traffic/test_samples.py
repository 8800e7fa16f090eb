"""What LoadGen may hold: all texts, and as many decoded images as there is room for."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tightrope.artifacts.files import write_json
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.image_settings import load_settings
from tightrope.inputs.images import EncodedImages
from tightrope.inputs.texts import text_arrays
from tightrope.measure.traffic import ready_samples

EDGE = 8
IMAGE = 3 * EDGE * EDGE * 4


@pytest.fixture
def images(tmp_path: Path) -> Sequence[Arrays]:
    """Ten images of noise, not yet decoded."""
    processor = {"image_processor_type": "ViTImageProcessor", "size": EDGE}
    write_json(tmp_path / "preprocessor_config.json", processor)
    return EncodedImages([{"random": seed} for seed in range(10)], load_settings(tmp_path))


@pytest.mark.parametrize(
    ("room", "held"), [(10 * IMAGE, 10), (2**30, 10), (4 * IMAGE, 4), (5 * IMAGE - 1, 4), (1, 1)]
)
def test_the_first_images_are_decoded_once_as_many_as_there_is_room_for(
    images: Sequence[Arrays], room: int, held: int
) -> None:
    rows = ready_samples(images, image_bytes=room)
    assert len(rows) == held
    for place, row in enumerate(rows):
        np.testing.assert_array_equal(row["pixel_values"], images[place]["pixel_values"])
        assert row["pixel_values"] is rows[place]["pixel_values"]


def test_texts_are_all_kept_whatever_their_number() -> None:
    rows = [text_arrays(np.arange(1, length)) for length in (3, 5, 9)]
    assert ready_samples(rows, image_bytes=1) == rows
