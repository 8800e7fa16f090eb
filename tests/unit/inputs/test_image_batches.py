"""Images become batches: of the size of the model, in the order of the split, decoded when read."""

from pathlib import Path

import numpy as np
import pytest
from manifests import CHECKPOINT
from splits import prepare_digits, split_of
from tightrope.artifacts.files import write_json
from tightrope.artifacts.manifest import write_manifest
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import batches_by_length, batches_of_equal_length, stack
from tightrope.inputs.encode import (
    SOME_IMAGES,
    load_encoder,
    read_split,
    some_examples,
    timing_batches,
)
from tightrope.inputs.images import EncodedImages
from tightrope.inputs.texts import truncation_of
from tightrope.signature import IMAGE

HEIGHT, WIDTH = 12, 16


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    manifest = prepare_digits(tmp_path_factory.mktemp("digits") / "data.json")
    return split_of(manifest, "evaluation")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    sizes = {"height": HEIGHT, "width": WIDTH}
    settings = {"image_processor_type": "ViTImageProcessor", "size": sizes}
    write_json(folder / "preprocessor_config.json", settings)
    write_manifest(folder / "checkpoint.json", **{**CHECKPOINT, "task": IMAGE, **sizes})
    return folder / "checkpoint.json"


@pytest.fixture(scope="module")
def rows(checkpoint: Path, split: Path) -> EncodedImages:
    return load_encoder(checkpoint, max_sequence=1)(read_split(split))


def test_batches_hold_every_image_in_the_order_of_the_split(rows: EncodedImages) -> None:
    whole = stack(rows)["pixel_values"]
    assert (whole.shape, whole.dtype) == ((30, 3, HEIGHT, WIDTH), np.float32)
    assert whole.flags.c_contiguous
    assert whole.std() > 0.1
    found = list(batches_by_length(rows, 8))
    assert [index for indices, _ in found for index in indices] == list(range(30))
    together = np.concatenate([batch["pixel_values"] for _, batch in found])
    np.testing.assert_array_equal(together, whole)
    assert truncation_of(rows) is None


@pytest.mark.parametrize(("tokens", "size"), [(1, 1), (3 * HEIGHT * WIDTH // 64, 3), (10**6, 30)])
def test_64_pixels_take_the_room_of_a_token(rows: EncodedImages, tokens: int, size: int) -> None:
    sizes = [len(one["pixel_values"]) for one in batches_of_equal_length(rows, tokens=tokens)]
    assert sizes == [size] * (30 // size)


def test_what_is_timed_begins_anew(checkpoint: Path, split: Path, rows: EncodedImages) -> None:
    shapes = [{"batch": size, "height": HEIGHT, "width": WIDTH} for size in (1, 40)]
    one, many = timing_batches(checkpoint, split, shapes, max_sequence=1)
    known = stack(rows)["pixel_values"]
    np.testing.assert_array_equal(one["pixel_values"], known[:1])
    np.testing.assert_array_equal(many["pixel_values"], np.concatenate([known, known[:10]]))
    with pytest.raises(TightropeError, match=r"images of 12x16 pixels .* shapes has 16x12"):
        shapes = [{"batch": 1, "height": WIDTH, "width": HEIGHT}]
        timing_batches(checkpoint, split, shapes, max_sequence=1)


def test_of_a_source_of_images_no_more_are_held_than_are_looked_at(tmp_path: Path) -> None:
    data = prepare_digits(tmp_path / "data.json", train=200, evaluation=20)
    for path in (data, split_of(data, "train")):
        assert len(some_examples(path)) == SOME_IMAGES < 200
