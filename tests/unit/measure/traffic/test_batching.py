import numpy as np
import pytest
from tightrope.errors import TightropeError
from tightrope.measure.traffic.padding import padded_lengths
from tightrope.measure.traffic.serving import Batch, Waiting

LENGTHS = [3, 9, 8, 20]


def taken(waiting: Waiting) -> list[Batch]:
    """All batches until nothing waits."""
    return list(iter(waiting.take, None))


def waiting(padded: list[int | None], batch: int) -> Waiting:
    """Each sample waits once, in the order of its index; tickets are 100 more."""
    queue = Waiting(padded, batch)
    for index in range(len(padded)):
        queue.add(100 + index, index)
    return queue


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


def test_a_sample_that_no_bucket_holds_is_an_error() -> None:
    with pytest.raises(TightropeError, match="20 tokens"):
        padded_lengths("bucketed", LENGTHS, max_sequence=32, edges=[8, 16])


def test_an_unknown_padding_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(TightropeError, match=r"padding even: .* fixed, longest, bucketed, none"):
        padded_lengths("even", LENGTHS, max_sequence=32, edges=[])


@pytest.mark.parametrize("length", [None, 64])
def test_samples_of_one_queue_come_out_as_they_came(length: int | None) -> None:
    assert taken(waiting([length] * 5, 2)) == [
        Batch([100, 101], [0, 1], length),
        Batch([102, 103], [2, 3], length),
        Batch([104], [4], length),
    ]


def test_nothing_comes_out_where_nothing_waits() -> None:
    queue = waiting([8], 4)
    assert queue.take() == Batch([100], [0], 8)
    assert queue.take() is None


def test_one_sample_can_wait_many_times() -> None:
    queue = Waiting([8], 2)
    for ticket in (7, 8, 9):
        queue.add(ticket, 0)
    assert taken(queue) == [Batch([7, 8], [0, 0], 8), Batch([9], [0], 8)]


def test_the_queue_whose_first_has_waited_longest_goes_first() -> None:
    queue = waiting([64, 8, 8, 8, 64, 16], 2)
    assert [(batch.indices, batch.sequence) for batch in taken(queue)] == [
        ([0, 4], 64),
        ([1, 2], 8),
        ([3], 8),
        ([5], 16),
    ]


def test_a_rare_length_does_not_starve_while_others_keep_coming() -> None:
    queue = Waiting([8, 64], 2)
    for ticket in range(4):
        queue.add(ticket, 0)
    queue.add(99, 1)
    seen = []
    for ticket in range(10, 20, 2):
        seen.append(queue.take())
        queue.add(ticket, 0)
        queue.add(ticket + 1, 0)
    assert [batch and batch.sequence for batch in seen] == [8, 8, 64, 8, 8]


@pytest.mark.parametrize("seed", range(20))
def test_a_batch_mixes_no_buckets_and_each_ticket_comes_out_once(seed: int) -> None:
    draw = np.random.default_rng(seed)
    padded = draw.choice([8, 16, 64], size=30).tolist()
    queue, batches, arrivals = Waiting(padded, 4), [], {}
    for ticket in range(200):
        arrivals[ticket] = int(draw.integers(30))
        queue.add(ticket, arrivals[ticket])
        if draw.random() < 0.4 and (batch := queue.take()) is not None:
            batches.append(batch)
    batches += taken(queue)
    for batch in batches:
        assert 1 <= len(batch.tickets) <= 4
        assert {padded[index] for index in batch.indices} == {batch.sequence}
        assert batch.indices == [arrivals[ticket] for ticket in batch.tickets]
    for length in set(padded):
        own = [t for batch in batches if batch.sequence == length for t in batch.tickets]
        assert own == [ticket for ticket, index in arrivals.items() if padded[index] == length]
