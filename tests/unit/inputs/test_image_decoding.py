import struct
import zlib

import numpy as np
import pytest
from PIL import Image
from small_images import encoded, noise
from tightrope.errors import TightropeError
from tightrope.inputs import images
from tightrope.inputs.images import decode_rgb

RED = (255, 0, 0)


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


def test_grey_ink_and_palettes_become_rgb() -> None:
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


def test_what_is_transparent_is_laid_over_white() -> None:
    image = np.zeros((1, 3, 4), np.uint8)
    image[0, :, 3] = [255, 0, 127]
    assert pixels(encoded(image))[0, :, 0].tolist() == [0, 255, 128]
    grey = Image.fromarray(np.array([[[0, 255], [0, 0]]], np.uint8), "LA")
    assert pixels(encoded(grey))[0, :, 1].tolist() == [0, 255]


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
    assert "\n" not in said
    return said


def test_float_pixels_have_no_known_range() -> None:
    deep = np.array([[0.5, 1.5]], np.float32)
    assert "pixels of mode F have no known range" in error_of(encoded(deep, "TIFF"))
    wide = np.array([[0, 2**20]], np.int32)
    assert "pixels of mode I have no known range" in error_of(encoded(wide, "TIFF"))


def png_header(width: int, height: int) -> bytes:
    """A PNG file of a few bytes that says it has so many pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)

    size = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(bytes(1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("image", "said"),
    [
        (b"", "no image that can be read"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n", "no image that can be read"),
        (png_header(8_000, 8_000), "more than 50000000 pixels are not decoded"),
        (png_header(2**31 - 1, 2**31 - 1), "more than 50000000 pixels are not decoded"),
        (b"".join((encoded(noise(64, 64))[:6000], b"\xff" * 99, bytes(6000))), "broken or cut off"),
    ],
)
def test_what_is_no_image_a_huge_and_a_damaged_one_are_named(image: bytes, said: str) -> None:
    """A huge one before it is decoded."""
    assert said in error_of(image)


def test_an_image_of_just_the_largest_size_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "LARGEST_PIXELS", 12)
    assert pixels(encoded(noise(4, 3))).shape == (4, 3, 3)
    with pytest.raises(TightropeError, match="a: 13 x 1 pixels"):
        decode_rgb(encoded(noise(1, 13)), name="a")
