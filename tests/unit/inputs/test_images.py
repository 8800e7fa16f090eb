"""Images are decoded, and become the pixels that transformers makes of them."""

import io
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from PIL import Image
from small_images import encoded, noise
from tightrope.errors import TightropeError
from tightrope.inputs.encode import ImageSplit
from tightrope.inputs.image_settings import PROCESSORS, load_settings, save_settings
from tightrope.inputs.images import EncodedImages, decode_rgb, pixel_values
from tightrope.inputs.reference import check_images
from transformers import AutoImageProcessor

RED = (255, 0, 0)
SIZES = ((64, 64), (300, 200), (37, 91))
SMALL = {"size": {"shortest_edge": 56}, "crop_size": {"height": 48, "width": 48}}
CASES: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in PROCESSORS),
    ("ConvNextImageProcessorFast", {"size": {"shortest_edge": 64}, "crop_pct": 0.95}),
    ("ConvNextImageProcessor", {"size": {"shortest_edge": 400}}),
    ("ConvNextImageProcessor", {"size": 224, "image_mean": [0.4, 0.5, 0.6]}),
    ("ViTFeatureExtractor", {"size": 32, "resample": 0, "do_normalize": False}),
    ("CLIPImageProcessor", {**SMALL, "do_rescale": False}),
    ("BitImageProcessor", {**SMALL, "do_resize": False}),
    ("DeiTImageProcessor", {"crop_size": {"height": 300, "width": 100}}),
]


def pixels(image: bytes) -> np.ndarray:
    decoded = decode_rgb(image, name="a")
    assert decoded.mode == "RGB"
    return np.asarray(decoded)


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "PPM", "GIF", "WEBP", "JPEG"])
def test_each_format_gives_its_pixels_and_a_truncated_image_is_named(kind: str) -> None:
    found = pixels(encoded(np.full((7, 5, 3), 200, np.uint8), kind))
    assert found.shape == (7, 5, 3)
    assert abs(found.astype(int) - 200).max() <= 2
    whole = encoded(noise(64, 64), kind)
    for length in (len(whole) // 2, len(whole) // 10):
        said = error_of(whole[:length])
        assert "broken or cut off" in said or "no image that can be read" in said


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "PPM"])
def test_16_bit_grey_is_scaled_and_not_clipped(kind: str) -> None:
    grey = np.array([[0, 257, 51200, 65535]], np.uint16)
    assert pixels(encoded(Image.fromarray(grey), kind))[0, :, 0].tolist() == [0, 1, 199, 255]


def test_grey_ink_and_palettes_become_rgb_and_what_is_transparent_is_laid_over_white() -> None:
    grey = noise(6, 4)[:, :, 0]
    np.testing.assert_array_equal(pixels(encoded(grey)), np.stack([grey] * 3, axis=2))
    assert pixels(encoded(Image.new("1", (1, 1), 1))).tolist() == [[[255, 255, 255]]]
    ink = Image.new("CMYK", (8, 8), (0, 255, 255, 0))
    assert np.abs(pixels(encoded(ink, "TIFF")).astype(int) - RED).max() <= 2
    palette = Image.new("P", (2, 1))
    palette.putpalette([*RED, 0, 0, 255])
    palette.putpixel((1, 0), 1)
    assert pixels(encoded(palette)).tolist() == [[list(RED), [0, 0, 255]]]
    assert pixels(encoded(palette, transparency=1)).tolist() == [[list(RED), [255, 255, 255]]]
    image = np.zeros((1, 3, 4), np.uint8)
    image[0, :, 3] = [255, 0, 127]
    assert pixels(encoded(image))[0, :, 0].tolist() == [0, 255, 128]
    both = Image.fromarray(np.array([[[0, 255], [0, 0]]], np.uint8), "LA")
    assert pixels(encoded(both))[0, :, 1].tolist() == [0, 255]


def test_an_image_is_turned_as_exif_says_and_of_an_animation_it_is_the_first_frame() -> None:
    image = Image.new("RGB", (3, 2))
    image.putpixel((0, 0), RED)
    exif = Image.Exif()
    exif[0x0112] = 6
    found = pixels(encoded(image, exif=exif))
    assert (found.shape, found[0, 1].tolist()) == ((3, 2, 3), list(RED))
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
    animation = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert pixels(animation)[0, 0].tolist() == list(RED)


def error_of(image: bytes) -> str:
    with pytest.raises(TightropeError) as caught:
        decode_rgb(image, name="cats/1.jpg")
    said = str(caught.value)
    assert said.startswith("cats/1.jpg: ")
    return said


def png_header(width: int, height: int) -> bytes:
    """A PNG file of a few bytes that says it has so many pixels."""
    content = bytearray(encoded(noise(8, 8)))
    content[16:24] = struct.pack(">II", width, height)
    content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
    return bytes(content)


@pytest.mark.parametrize(
    ("image", "said"),
    [
        (b"", "no image that can be read"),
        # Pillow knows more formats, of which some run programs
        (encoded(noise(8, 8), "PCX"), "no image that can be read"),
        # before it is decoded
        (png_header(8_000, 8_000), "more than 50000000 pixels are not decoded"),
        (png_header(2**31 - 1, 2**31 - 1), "more than 50000000 pixels are not decoded"),
        (b"".join((encoded(noise(64, 64))[:6000], b"\xff" * 99, bytes(6000))), "broken or cut off"),
        (encoded(np.array([[0.5, 1.5]], np.float32), "TIFF"), "of mode F have no known range"),
        (encoded(np.array([[0, 2**20]], np.int32), "TIFF"), "of mode I have no known range"),
    ],
)
def test_what_is_no_image_a_huge_and_a_damaged_one_are_named(image: bytes, said: str) -> None:
    assert said in error_of(image)


def folder_with(folder: Path, fields: dict[str, Any]) -> Path:
    (folder / "preprocessor_config.json").write_text(json.dumps(fields))
    return folder


@pytest.mark.parametrize(("processor", "fields"), CASES)
def test_pixel_values_are_those_of_transformers(tmp_path, processor, fields) -> None:
    folder_with(tmp_path, {"image_processor_type": processor, **fields})
    if "FeatureExtractor" in processor:
        folder_with(tmp_path, {"feature_extractor_type": processor, **fields})
    settings = load_settings(tmp_path)
    asked = AutoImageProcessor.from_pretrained(tmp_path, backend="pil")
    save_settings(tmp_path, settings)
    assert load_settings(tmp_path) == settings
    saved = AutoImageProcessor.from_pretrained(tmp_path, backend="pil")
    for height, width in SIZES:
        image = encoded(noise(height, width))
        ours = pixel_values(image, settings, name="a.png")
        assert (ours.shape, ours.dtype) == ((3, settings.height, settings.width), np.float32)
        assert ours.flags.c_contiguous
        for theirs in (asked, saved):
            opened = Image.open(io.BytesIO(image))
            expected = theirs(opened, return_tensors="np")["pixel_values"][0]
            np.testing.assert_allclose(ours, expected, atol=1e-5, rtol=1e-6)


def test_without_a_file_the_size_is_that_of_the_model(tmp_path: Path) -> None:
    for size, expected_size in ((64, (64, 64)), ([32, 48], (32, 48)), (None, (224, 224))):
        (tmp_path / "config.json").write_text(json.dumps({"image_size": size}))
        settings = load_settings(tmp_path)
        assert (settings.height, settings.width) == expected_size
    grey = np.full((10, 10, 3), 124, np.uint8)
    expected = (124 / 255 - np.array([0.485, 0.456, 0.406])) / np.array([0.229, 0.224, 0.225])
    found = pixel_values(encoded(grey), settings)
    np.testing.assert_allclose(found.mean(axis=(1, 2)), expected, atol=1e-5)


VIT = {"image_processor_type": "ViTImageProcessor"}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"image_processor_type": None}, "processor without a name is not known; known are Beit"),
        ({"image_processor_type": "LevitImageProcessor"}, "LevitImageProcessor is not known"),
        ({"do_pad": True}, "not supported yet: do_pad"),
        ({"size": {"longest_edge": 9}}, "a size of longest_edge gives images of sev"),
        ({"size": {"height": 64, "width": 64}}, "ConvNext has a shortest_edge"),
        ({"size": 0}, "sizes are whole numbers of pixels"),
        ({"size": "large"}, "a size of 'large'"),
        ({"resample": 9}, "resample is 9"),
        ({"resample": "bicubic"}, "resample is bicubic, Pillow's filters are 0 to 5"),
        ({"image_std": [1, 0, 1]}, "three numbers each"),
        ({"image_mean": 0.5}, "cannot be used"),
        ({**VIT, "size": {"shortest_edge": 9}}, "without do_center_crop"),
    ],
)
def test_unknown_settings_are_one_line(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    fields = {"image_processor_type": "ConvNextImageProcessor", **fields}
    with pytest.raises(TightropeError, match=rf"preprocessor_config\.json: .*{said}"):
        load_settings(folder_with(tmp_path, fields))


def test_a_model_of_grey_images_and_settings_that_are_none_are_refused(tmp_path: Path) -> None:
    for name, content, said in (
        ("preprocessor_config", "[]", "no settings of an image processor"),
        ("config", '{"num_channels": 1}', "1-channel images are not supported yet"),
    ):
        (tmp_path / f"{name}.json").write_text(content)
        with pytest.raises(TightropeError, match=rf"/{name}\.json: {said}"):
            load_settings(tmp_path)


def test_an_image_of_another_size_is_an_error_where_nothing_resizes_it(tmp_path: Path) -> None:
    settings = load_settings(folder_with(tmp_path, {**VIT, "do_resize": False, "size": 8}))
    assert pixel_values(encoded(noise(8, 8)), settings, name="a.png").shape == (3, 8, 8)
    with pytest.raises(TightropeError, match=r"b\.png: 9 x 8 pixels, the model takes 8 x 8"):
        pixel_values(encoded(noise(9, 8)), settings, name="b.png")


def test_encoded_images_are_decoded_when_they_are_asked_for(tmp_path: Path) -> None:
    settings = load_settings(folder_with(tmp_path, {**VIT, "size": {"height": 8, "width": 6}}))
    files = [encoded(noise(9, 9)), b"no image", encoded(noise(5, 7))]
    names = [f"{number}.png" for number in range(3)]
    table = pyarrow.table({"label": range(3), "image": files, "name": names})
    with pyarrow.ipc.new_file(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    split = ImageSplit(tmp_path / "a.arrow")
    assert [one["name"] for one in split[::-1]] == names[::-1]
    images = EncodedImages(split, settings)
    assert [len(images), len(images[1:]), len(images[1:][1:])] == [3, 2, 1]
    expected = pixel_values(encoded(noise(5, 7)), settings)
    np.testing.assert_array_equal(images[1:][-1]["pixel_values"], expected)
    with pytest.raises(TightropeError, match=r"^1\.png: no image that can be read"):
        images[1]


def test_a_seed_becomes_standard_normal_pixels_that_are_always_the_same(tmp_path: Path) -> None:
    settings = load_settings(folder_with(tmp_path, {**VIT, "size": 64}))
    images = EncodedImages([{"random": 7}, {"random": 8}], settings)
    first, second = (one["pixel_values"] for one in images)
    assert (first.shape, first.dtype) == ((3, 64, 64), np.float32)
    np.testing.assert_array_equal(first, images[0]["pixel_values"])
    assert abs(first.mean()) < 0.05
    assert first.std() == pytest.approx(1, abs=0.05)
    assert not np.array_equal(first, second)


def test_what_is_prepared_is_compared_with_transformers_one_image_at_a_time(tmp_path: Path) -> None:
    brought, prepared = tmp_path / "brought", tmp_path / "prepared"
    size = {"height": 16, "width": 16}
    for folder, resample in ((brought, 2), (prepared, 0)):
        folder.mkdir()
        fields = {"image_processor_type": "ViTImageProcessor", "size": size, "resample": resample}
        folder_with(folder, fields)
    images = [{"image": encoded(noise(20 + n, 30)), "name": f"{n}.png"} for n in range(40)]

    def means(batch: dict[str, np.ndarray]) -> np.ndarray:
        return batch["pixel_values"].mean(axis=(2, 3))

    both = {"answer": means, "reference": means}
    assert check_images("mine", (brought, brought), images, **both) == 33
    with pytest.raises(TightropeError, match=r"^mine: .*\.png becomes other pixels than"):
        check_images("mine", (brought, prepared), images, **both)
    for answer, said in (
        (lambda batch: means(batch) + 1, "the prepared model is not the one that was brought"),
        (lambda batch: means(batch) * len(means(batch)), "other examples of a batch change"),
    ):
        with pytest.raises(TightropeError, match=said):
            check_images("mine", (brought, brought), images, answer=answer, reference=means)
