"""Dynamic batching: samples that wait when the engine is free form its next batch."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from tightrope.inputs.arrays import Arrays, length, stack
from tightrope.measure.answers import answers


class Batch(NamedTuple):
    """Samples that run together, padded to `sequence` tokens; None: to the longest of them."""

    tickets: list[int]
    indices: list[int]
    sequence: int | None


@dataclass(frozen=True)
class Query:
    """Query for one sample, with the same two attributes as LoadGen's QuerySample."""

    id: int
    index: int


class Serving:
    """Engine that answers queries in batches, in the thread that calls `work`.

    Other threads put lists of queries into `inbox`, and None after the last. For each index of
    `rows`, `predictions` and `margins` (highest logit minus the second) hold the latest answer,
    -1 and 0 before the first. `tokens` counts tokens of samples, `padded_tokens` those added by
    padding; of images they are tokens of equal memory cost.
    """

    def __init__(
        self,
        run: Callable[[Arrays], Any],
        rows: Sequence[Arrays],
        padded: Sequence[int | None],
        *,
        batch: int,
        classes: int,
    ) -> None:
        self.run = run
        self.classes = classes
        self.rows = rows
        self.waiting = Waiting(padded, batch)
        self.inbox: SimpleQueue[list[Any] | None] = SimpleQueue()
        self.open = True
        self.predictions = [-1] * len(rows)
        self.margins = [0.0] * len(rows)
        self.batches = self.tokens = self.padded_tokens = 0

    def work(self, complete: Callable[[list[int]], None]) -> None:
        """Answer queries until the inbox holds None; call `complete` with the ids of each batch.

        After an error of the engine, all queries are completed without an answer, because LoadGen
        would wait for them forever. The error is raised at the end.
        """
        failed: BaseException | None = None
        while (batch := self.next_batch()) is not None:
            if failed is None:
                try:
                    self.answer(batch)
                except BaseException as error:  # even SystemExit: open queries must be completed
                    failed = error
            complete(batch.tickets)
        if failed is not None:
            raise failed

    def next_batch(self) -> Batch | None:
        """Return the next batch of the samples received so far, None after the last."""
        batch = None
        while batch is None and (self.open or self.waiting.queues):
            self.receive(block=not self.waiting.queues)
            batch = self.waiting.take()
        return batch

    def receive(self, *, block: bool) -> None:
        """Move all queries of the inbox to `waiting`; with `block`, wait for the first."""
        while self.open:
            try:
                queries = self.inbox.get(block)
            except Empty:
                return
            if queries is None:
                self.open = False
                return
            for query in queries:
                self.waiting.add(query.id, query.index)
            block = False

    def answer(self, batch: Batch) -> None:
        """Run one batch and store its predictions and margins.

        Raises WorkFailed unless the logits are finite numbers [batch, classes].
        """
        rows = [self.rows[index] for index in batch.indices]
        inputs = stack(rows, sequence=batch.sequence)
        answered = answers(self.run(inputs), inputs, classes=self.classes)
        for index, (prediction, margin) in zip(batch.indices, answered, strict=True):
            self.predictions[index], self.margins[index] = prediction, margin
        self.batches += 1
        lengths = [length(row) for row in rows]
        self.tokens += sum(lengths)
        self.padded_tokens += len(lengths) * (batch.sequence or max(lengths)) - sum(lengths)


class Waiting:
    """Waiting samples in order of arrival, one queue per padded length.

    `padded[index]` is the padded length of a sample. The next batch comes from the queue whose
    first sample has waited longest, so no sample waits forever. A batch never mixes length
    buckets; with a single queue, batches are in order of arrival.
    """

    def __init__(self, padded: Sequence[int | None], batch: int) -> None:
        self.padded = padded
        self.batch = batch
        self.arrived = 0
        self.queues: dict[int | None, deque[tuple[int, int, int]]] = {}

    def add(self, ticket: int, index: int) -> None:
        """Append the sample with this index to its queue; its batch will contain `ticket`."""
        queue = self.queues.setdefault(self.padded[index], deque())
        queue.append((self.arrived, ticket, index))
        self.arrived += 1

    def take(self) -> Batch | None:
        """Return the next batch, at most `batch` samples; None if no sample waits."""
        if not self.queues:
            return None
        sequence = min(self.queues, key=lambda padded: self.queues[padded][0])
        queue = self.queues[sequence]
        taken = [queue.popleft() for _ in range(min(self.batch, len(queue)))]
        if not queue:
            del self.queues[sequence]
        return Batch([one[1] for one in taken], [one[2] for one in taken], sequence)
