"""Thumbnails of images whose predictions changed."""

import base64
import io
from typing import Any

import numpy as np
from PIL import Image
from small_images import encoded, noise
from tightrope.summary.examples import MOST, SIDE, flipped_indices, thumbnails

PREFIX = "data:image/jpeg;base64,"


def example(image: bytes) -> dict[str, Any]:
    return {"label": 0, "image": image, "name": "an image"}


def flips(*indices: int, text: str | None = "a.png") -> dict[str, Any]:
    return {"accuracy": {"flipped": [{"index": index, "text": text} for index in indices]}}


def test_the_first_flips_of_each_variant_are_taken_in_turn_each_example_once() -> None:
    results = [flips(5, 3, 1), {"accuracy": None}, flips(3, 8), {"accuracy": {"flipped": None}}]
    assert flipped_indices(results) == [5, 3, 8, 1]
    assert (
        flipped_indices([flips(*range(100)), flips(*range(200, 300))])
        == [index for pair in zip(range(MOST), range(200, 300), strict=False) for index in pair][
            :MOST
        ]
    )


def test_flips_of_another_split_have_no_picture() -> None:
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


def test_no_thumbnail_is_large() -> None:
    (uri,) = thumbnails([example(encoded(noise(SIDE, SIDE)))], [0]).values()
    assert len(uri) < 8_000


def test_what_is_no_image_has_no_thumbnail() -> None:
    assert thumbnails([example(b"no image")], [0]) == {}
    assert thumbnails([{"label": 0, "text": "words"}], [0]) == {}
