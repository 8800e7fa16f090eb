"""At which shapes PyTorch's compilers compile on a GPU, by the options alone."""

from typing import Any

import pytest
from tightrope.runtimes.torch.device import measured, tuned_for

BUCKETS = {"batch": [1, 32, 128], "sequence": [64, 128, 512]}
TEXTS = [[1, 128], [32, 100], [32, 128]]


@pytest.mark.parametrize(
    ("options", "programs", "tuned"),
    [
        # a CPU
        ({}, [], (2, 16)),
        # in the shapes of CUDA graphs, of which the longest bucket is not measured
        ({"graphs": True, "buckets": BUCKETS, "shapes": TEXTS}, [(1, 128), (32, 128)], (32, 128)),
        ({"graphs": False, "buckets": BUCKETS, "shapes": TEXTS}, [*map(tuple, TEXTS)], (32, 128)),
        # equal sizes would be compiled as one, and one row as a constant
        ({"graphs": False, "shapes": [[128, 128]]}, [(128, 128)], (129, 128)),
        ({"graphs": True, "buckets": None, "shapes": [[1, 64]]}, [(1, 64)], (2, 64)),
        # images
        ({"graphs": True, "buckets": {"batch": [1, 8]}, "shapes": [[8]]}, [(8,)], (8, 16)),
        # who names no shapes measures the buckets
        ({"graphs": True, "buckets": {"batch": [1, 8]}}, [(1,), (8,)], (8, 16)),
    ],
)
def test_programs_are_of_the_measured_shapes_and_the_one_for_any_is_tuned_for_the_largest(
    options: dict[str, Any], programs: list[tuple[int, ...]], tuned: tuple[int, int]
) -> None:
    assert (measured(options), tuned_for(options)) == (programs, tuned)
