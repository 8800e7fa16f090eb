import numpy as np
from tightrope.training.examples import flip_crop


def test_an_image_is_moved_by_at_most_an_eighth_and_mirrored_in_half_the_cases() -> None:
    image = np.arange(1, 1 + 3 * 16 * 24, dtype=np.float32).reshape(3, 16, 24)
    generator, mirrored, moves = np.random.default_rng(0), 0, set()
    for _ in range(400):
        found = flip_crop({"pixel_values": image}, generator)["pixel_values"]
        assert found.shape == image.shape
        assert found.dtype == np.float32
        assert found.flags.c_contiguous
        # a pixel that every move keeps
        (channel, row, column) = np.argwhere(found == image[1, 8, 12])[0]
        flipped = found[channel, row, column + 1] < found[channel, row, column]
        mirrored += bool(flipped)
        down, right = 8 - row, 12 - (23 - column if flipped else column)
        moves.add((down, right))
        kept = (16 - abs(down)) * (24 - abs(right))
        assert np.count_nonzero(found) == 3 * kept
    assert 150 < mirrored < 250
    assert {down for down, _ in moves} == set(range(-2, 3))
    assert {right for _, right in moves} == set(range(-3, 4))
