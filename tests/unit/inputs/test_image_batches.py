"""Images become batches: of the size of the model, in the order of the split, decoded when read."""

from pathlib import Path

import numpy as np
import pytest
from manifests import CHECKPOINT
from splits import prepare_splits, split_of
from tightrope.artifacts.files import write_json
from tightrope.artifacts.manifest import write_manifest
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import batches_by_length, batches_of_equal_length, stack
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.inputs.timing_batches import timing_batches
from tightrope.signature import IMAGE

HEIGHT, WIDTH = 12, 16


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    manifest = tmp_path_factory.mktemp("digits") / "data.json"
    sizes = {"train": 20, "evaluation": 30}
    prepare_splits(manifest, source="digits", columns={}, splits=sizes, pool=20, seed=0, task=IMAGE)
    return manifest


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    settings = {
        "image_processor_type": "ViTImageProcessor",
        "size": {"height": HEIGHT, "width": WIDTH},
    }
    write_json(folder / "preprocessor_config.json", settings)
    sizes = {"height": HEIGHT, "width": WIDTH}
    write_manifest(folder / "checkpoint.json", **{**CHECKPOINT, "task": IMAGE, **sizes})
    return folder / "checkpoint.json"


def pixels(checkpoint: Path, data: Path) -> np.ndarray:
    rows = load_encoder(checkpoint, max_sequence=1)(read_split(split_of(data, "evaluation")))
    return stack(rows)["pixel_values"]


def test_a_batch_is_of_the_size_of_the_model(checkpoint: Path, data: Path) -> None:
    found = pixels(checkpoint, data)
    assert (found.shape, found.dtype) == ((30, 3, HEIGHT, WIDTH), np.float32)
    assert found.flags.c_contiguous
    assert found.std() > 0.1


def test_batches_hold_every_image_once_in_the_order_of_the_split(
    checkpoint: Path, data: Path
) -> None:
    rows = load_encoder(checkpoint, max_sequence=1)(read_split(split_of(data, "evaluation")))
    found = list(batches_by_length(rows, 8))
    assert [index for indices, _ in found for index in indices] == list(range(30))
    together = np.concatenate([batch["pixel_values"] for _, batch in found])
    np.testing.assert_array_equal(together, pixels(checkpoint, data))


@pytest.mark.parametrize(("tokens", "size"), [(1, 1), (3 * HEIGHT * WIDTH // 64, 3), (10**6, 30)])
def test_an_image_takes_the_room_of_a_token_for_each_64_pixels(
    checkpoint: Path, data: Path, tokens: int, size: int
) -> None:
    rows = load_encoder(checkpoint, max_sequence=1)(read_split(split_of(data, "evaluation")))
    batches = list(batches_of_equal_length(rows, tokens=tokens))
    assert {len(one["pixel_values"]) for one in batches[:-1]} <= {size}
    assert sum(len(one["pixel_values"]) for one in batches) == 30


def test_what_is_timed_are_images_of_the_split_again_from_the_first_where_it_is_short(
    checkpoint: Path, data: Path
) -> None:
    shapes = [{"batch": size, "height": HEIGHT, "width": WIDTH} for size in (1, 40)]
    one, many = timing_batches(checkpoint, split_of(data, "evaluation"), shapes, max_sequence=1)
    known = pixels(checkpoint, data)
    np.testing.assert_array_equal(one["pixel_values"], known[:1])
    np.testing.assert_array_equal(many["pixel_values"], np.concatenate([known, known[:10]]))


def test_a_shape_of_another_size_is_an_error_with_both_sizes(checkpoint: Path, data: Path) -> None:
    shapes = [{"batch": 1, "height": WIDTH, "width": HEIGHT}]
    with pytest.raises(TightropeError, match=r"images of 12 x 16 pixels .* shapes has 16 x 12"):
        timing_batches(checkpoint, split_of(data, "evaluation"), shapes, max_sequence=1)


def test_random_images_are_the_same_for_the_same_seed(checkpoint: Path) -> None:
    encode = load_encoder(checkpoint, max_sequence=1)
    one, again, other = encode([{"random": 5}, {"random": 5}, {"random": 6}])
    np.testing.assert_array_equal(one["pixel_values"], again["pixel_values"])
    assert one["pixel_values"].shape == (3, HEIGHT, WIDTH)
    assert not np.array_equal(one["pixel_values"], other["pixel_values"])
