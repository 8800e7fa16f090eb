"""Lengths to which samples are padded, and batches of samples of one length."""

from itertools import combinations

import numpy as np
import pytest
from tightrope.errors import TightropeError
from tightrope.measure.traffic_padding import bucket_edges, padded_length, padded_lengths
from tightrope.measure.traffic_serving import Batch, Waiting

LENGTHS = [3, 9, 8, 20]


def padded_tokens(lengths: list[int], edges: list[int] | tuple[int, ...]) -> int:
    """Tokens after padding, counted sample by sample."""
    return sum(min(edge for edge in edges if edge >= length) for length in lengths)


def fewest_tokens(lengths: list[int], count: int) -> int:
    """The least that any choice of edges among the lengths can give, by trying all of them."""
    distinct = sorted(set(lengths))
    choices = combinations(distinct[:-1], min(count, len(distinct)) - 1)
    return min(padded_tokens(lengths, (*inner, distinct[-1])) for inner in choices)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_no_other_edges_give_less_padding(count: int) -> None:
    for seed in range(24):
        draw = np.random.default_rng(seed)
        lengths = draw.integers(1, 3 + 2 * (seed % 8), size=1 + 2 * seed).tolist()
        edges = bucket_edges(lengths, count)
        assert padded_tokens(lengths, edges) == fewest_tokens(lengths, count)
        assert edges == sorted(set(edges))
        assert edges[-1] == max(lengths)
        assert len(edges) == min(count, len(set(lengths)))


@pytest.mark.parametrize(("lengths", "count"), [([], 2), ([5], 0)])
def test_no_lengths_or_no_buckets_is_an_error(lengths: list[int], count: int) -> None:
    with pytest.raises(TightropeError, match=f"{count} buckets for {len(lengths)} distinct"):
        bucket_edges(lengths, count)


def test_a_length_is_padded_to_the_smallest_edge_that_holds_it() -> None:
    found = [padded_length(length, [8, 16, 64]) for length in (1, 8, 9, 16, 17, 64)]
    assert found == [8, 8, 16, 16, 64, 64]
    with pytest.raises(TightropeError, match="65 tokens: the buckets hold 1 to 64"):
        padded_length(65, [8, 16, 64])


@pytest.mark.parametrize(
    ("padding", "expected"),
    [
        ("fixed", [32, 32, 32, 32]),
        ("longest", [None, None, None, None]),
        ("none", [None, None, None, None]),
        ("bucketed", [8, 20, 8, 20]),
    ],
)
def test_each_padding_gives_its_own_lengths(padding: str, expected: list[int | None]) -> None:
    assert padded_lengths(padding, LENGTHS, max_sequence=32, edges=[8, 20]) == expected


@pytest.mark.parametrize(
    ("padding", "words"),
    [("bucketed", "20 tokens"), ("even", r"padding even: .* fixed, longest, bucketed, none")],
)
def test_a_sample_that_no_bucket_holds_and_an_unknown_padding_are_errors(
    padding: str, words: str
) -> None:
    with pytest.raises(TightropeError, match=words):
        padded_lengths(padding, LENGTHS, max_sequence=32, edges=[8, 16])


def taken(padded: list[int | None], batch: int) -> list[Batch]:
    """All batches of samples that wait once, in the order of their index; tickets are 100 more."""
    queue = Waiting(padded, batch)
    for index in range(len(padded)):
        queue.add(100 + index, index)
    return list(iter(queue.take, None))


def test_batches_come_in_the_order_of_those_that_have_waited_longest() -> None:
    for length in (None, 64):
        assert taken([length] * 5, 2) == [
            Batch([100, 101], [0, 1], length),
            Batch([102, 103], [2, 3], length),
            Batch([104], [4], length),
        ]
    found = [(batch.indices, batch.sequence) for batch in taken([64, 8, 8, 8, 64, 16], 2)]
    assert found == [([0, 4], 64), ([1, 2], 8), ([3], 8), ([5], 16)]
    assert taken([], 2) == []


def test_a_batch_mixes_no_buckets_and_each_ticket_comes_out_once() -> None:
    for seed in range(20):
        draw = np.random.default_rng(seed)
        padded = draw.choice([8, 16, 64], size=30).tolist()
        queue, batches, arrivals = Waiting(padded, 4), [], {}
        for ticket in range(200):
            arrivals[ticket] = int(draw.integers(30))
            queue.add(ticket, arrivals[ticket])
            if draw.random() < 0.4 and (batch := queue.take()) is not None:
                batches.append(batch)
        batches += iter(queue.take, None)
        for batch in batches:
            assert 1 <= len(batch.tickets) <= 4
            assert {padded[index] for index in batch.indices} == {batch.sequence}
            assert batch.indices == [arrivals[ticket] for ticket in batch.tickets]
        for length in set(padded):
            own = [t for batch in batches if batch.sequence == length for t in batch.tickets]
            assert own == [t for t, index in arrivals.items() if padded[index] == length]
