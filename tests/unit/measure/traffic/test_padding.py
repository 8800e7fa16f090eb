from itertools import combinations

import numpy as np
import pytest
from tightrope.errors import TightropeError
from tightrope.measure.traffic.padding import bucket_edges, padded_length


def padded_tokens(lengths: list[int], edges: list[int] | tuple[int, ...]) -> int:
    """Tokens after padding, counted sample by sample."""
    return sum(min(edge for edge in edges if edge >= length) for length in lengths)


def fewest_tokens(lengths: list[int], count: int) -> int:
    """The least that any choice of edges among the lengths can give, by trying all of them."""
    distinct = sorted(set(lengths))
    choices = combinations(distinct[:-1], min(count, len(distinct)) - 1)
    return min(padded_tokens(lengths, (*inner, distinct[-1])) for inner in choices)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_no_other_edges_give_less_padding(seed: int, count: int) -> None:
    draw = np.random.default_rng(seed)
    lengths = draw.integers(1, 3 + 2 * (seed % 8), size=1 + 2 * seed).tolist()
    edges = bucket_edges(lengths, count)
    assert padded_tokens(lengths, edges) == fewest_tokens(lengths, count)
    assert edges == sorted(set(edges))
    assert edges[-1] == max(lengths)
    assert len(edges) == min(count, len(set(lengths)))


def test_many_short_samples_get_an_edge_of_their_own() -> None:
    assert bucket_edges([4] * 100 + [5, 60, 64], 2) == [4, 64]


def test_the_order_of_the_lengths_does_not_matter() -> None:
    lengths = [9, 2, 2, 7, 30, 31, 8]
    assert bucket_edges(lengths, 3) == bucket_edges(sorted(lengths), 3) == [2, 9, 31]


def test_with_a_bucket_for_each_length_nothing_is_padded() -> None:
    assert bucket_edges([7, 3, 3, 12], 3) == [3, 7, 12]
    assert bucket_edges([7, 3, 3, 12], 50) == [3, 7, 12]


@pytest.mark.parametrize(("lengths", "count"), [([], 2), ([5], 0)])
def test_no_lengths_or_no_buckets_is_an_error(lengths: list[int], count: int) -> None:
    with pytest.raises(TightropeError, match=f"{count} buckets for {len(lengths)} distinct"):
        bucket_edges(lengths, count)


@pytest.mark.parametrize(
    ("length", "edge"), [(1, 8), (8, 8), (9, 16), (16, 16), (17, 64), (64, 64)]
)
def test_a_length_is_padded_to_the_smallest_edge_that_holds_it(length: int, edge: int) -> None:
    assert padded_length(length, [8, 16, 64]) == edge


def test_a_length_beyond_the_last_edge_is_an_error_that_names_it() -> None:
    with pytest.raises(TightropeError, match="65 tokens: the buckets hold 1 to 64"):
        padded_length(65, [8, 16, 64])
