"""Thumbnails of images whose predictions changed, and the chance of a model."""

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
from accuracy_records import accuracy_record
from PIL import Image
from results import result
from small_images import encoded, noise
from splits import prepare_splits, split_of
from tightrope.decide.result import Accuracy, FlippedExample, Result
from tightrope.inputs.encode import read_split
from tightrope.signature import IMAGE
from tightrope.summary.models import MOST, SIDE, chance_of, flipped_indices, thumbnails

PREFIX = "data:image/jpeg;base64,"
VARIANT = "cpu-openvino-int8-nncf-8"


def test_chance_is_the_share_of_the_most_frequent_label_of_the_longest_record() -> None:
    records = [accuracy_record(labels=one) for one in ([0, 0], [0, 1, 1, 2, 1], None)]
    assert chance_of(records) == 0.6
    assert chance_of(records[2:]) is chance_of([]) is None


def example(image: bytes) -> dict[str, Any]:
    return {"label": 0, "image": image, "name": "an image"}


def flips(*indices: int, text: str | None = "a.png") -> Result:
    flipped = [FlippedExample(index, text, 0, 0, 1, 0.5, 0.5) for index in indices]
    return result(VARIANT, accuracy=Accuracy(0.9, 0.88, 0.92, 1500, flipped=flipped))


def test_the_first_flips_of_each_variant_are_taken_in_turn_each_example_once() -> None:
    unknown = [result(VARIANT, verdict=one) for one in (None, "kept")]
    assert flipped_indices([flips(5, 3, 1), unknown[0], flips(3, 8), unknown[1]]) == [5, 3, 8, 1]
    many = flipped_indices([flips(*range(100)), flips(*range(200, 300))])
    assert (many[:4], len(many)) == ([0, 200, 1, 201], MOST)
    # of another split
    assert flipped_indices([flips(5, text=None)]) == []


def test_a_thumbnail_is_a_small_picture_of_its_example() -> None:
    red, blue = np.zeros((2, 300, 150, 3), np.uint8)
    red[..., 0] = blue[..., 2] = 255
    split = [example(encoded(red)), example(encoded(blue, "JPEG"))]
    found = thumbnails(split, [1, 0])
    assert list(found) == ["1", "0"]
    for index, channel in (("0", 0), ("1", 2)):
        assert found[index].startswith(PREFIX)
        picture = Image.open(io.BytesIO(base64.b64decode(found[index].removeprefix(PREFIX))))
        assert picture.size == (SIDE // 2, SIDE)
        assert np.asarray(picture).mean((0, 1)).argmax() == channel
    (uri,) = thumbnails([example(encoded(noise(SIDE, SIDE)))], [0]).values()
    assert len(uri) < 8_000
    assert thumbnails([example(b"no image")], [0]) == {}
    assert thumbnails([{"label": 0, "text": "words"}], [0]) == {}


def test_images_of_a_split_whose_predictions_changed_have_thumbnails(tmp_path: Path) -> None:
    data, sizes = tmp_path / "data/data.json", {"train": 80, "evaluation": 20}
    prepare_splits(data, source="digits", columns={}, splits=sizes, pool=20, seed=0, task=IMAGE)
    split = read_split(split_of(data, "evaluation"))
    found = thumbnails(split, flipped_indices([flips(2, 0)]))
    assert set(found) == {"0", "2"}
    assert len(set(found.values())) == 2
    assert all(uri.startswith(PREFIX) for uri in found.values())
