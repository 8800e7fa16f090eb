"""Which of the waiting samples make the next batch, and to how many tokens it is padded."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from tightrope.errors import TightropeError
from tightrope.measure.traffic.padding import padded_length

PADDINGS = ("fixed", "longest", "bucketed")
# what images have in its place: they are all of one size
UNPADDED = "none"


class Batch(NamedTuple):
    """Samples that run together; `sequence` is None for the longest among them."""

    tickets: list[int]
    indices: list[int]
    sequence: int | None


def padded_lengths(
    padding: str, lengths: Sequence[int], *, max_sequence: int, edges: Sequence[int]
) -> list[int | None]:
    """To how many tokens each sample is padded; None: to the longest of its batch.

    `fixed`: to `max_sequence`; `longest`: None; `bucketed`: to the smallest edge that holds it;
    `none`, of images: None.
    """
    if padding == "fixed":
        return [max_sequence] * len(lengths)
    if padding in ("longest", UNPADDED):
        return [None] * len(lengths)
    if padding == "bucketed":
        return [padded_length(length, edges) for length in lengths]
    known = ", ".join((*PADDINGS, UNPADDED))
    raise TightropeError(f"padding {padding}: unknown; choose from {known}")


class Waiting:
    """Samples that wait, in order of arrival, one queue for each length of padding.

    `padded[index]` is that of the sample with that index. The next batch comes from the queue
    whose first sample has waited longest, so that none waits for ever: with one queue that is
    the order of arrival, with several a batch never mixes buckets.
    """

    def __init__(self, padded: Sequence[int | None], batch: int) -> None:
        self.padded = padded
        self.batch = batch
        self.arrived = 0
        self.queues: dict[int | None, deque[tuple[int, int, int]]] = {}

    def add(self, ticket: int, index: int) -> None:
        """Let the sample with that index wait; its `ticket` comes back with its batch."""
        queue = self.queues.setdefault(self.padded[index], deque())
        queue.append((self.arrived, ticket, index))
        self.arrived += 1

    def take(self) -> Batch | None:
        """The next batch, at most `batch` samples; None where nothing waits."""
        if not self.queues:
            return None
        sequence = min(self.queues, key=lambda padded: self.queues[padded][0])
        queue = self.queues[sequence]
        taken = [queue.popleft() for _ in range(min(self.batch, len(queue)))]
        if not queue:
            del self.queues[sequence]
        return Batch([one[1] for one in taken], [one[2] for one in taken], sequence)
