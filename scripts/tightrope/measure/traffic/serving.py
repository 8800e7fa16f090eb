"""Dynamic batching around an engine: what waits when it is free is its next batch."""

from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from tightrope.inputs.arrays import PIXELS, Arrays, length, stack
from tightrope.measure.logits import answers


class Batch(NamedTuple):
    """Samples that run together; `sequence` is None for the longest among them."""

    tickets: list[int]
    indices: list[int]
    sequence: int | None


class Query(NamedTuple):
    """One sample that is asked for; LoadGen's QuerySample has the same two attributes."""

    id: int
    index: int


class Serving:
    """An engine that answers queries in batches, in the thread that calls `work`.

    Others put lists of queries into `inbox`, and None when no more will come. For each index of
    `rows` the last prediction and its margin (highest logit less the second) are kept; before
    its first they are -1 and 0. `tokens` counts those of samples, `padded_tokens` those that
    padding added; images have none.
    """

    def __init__(
        self,
        run: Callable[[Arrays], np.ndarray],
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
        """Answer until None is in the inbox; `complete` gets the ids of each batch once.

        After an error of the engine every query is completed without an answer, and the error
        is raised at the end: who waits for a query would wait for ever.
        """
        failed: BaseException | None = None
        while (batch := self.next_batch()) is not None:
            if failed is None:
                try:
                    self.answer(batch)
                except BaseException as error:  # also SystemExit: the queries are still open
                    failed = error
            complete(batch.tickets)
        if failed is not None:
            raise failed

    def next_batch(self) -> Batch | None:
        """The next batch of all that has come by now; None when all is done."""
        batch = None
        while batch is None and (self.open or self.waiting.queues):
            self.receive(block=not self.waiting.queues)
            batch = self.waiting.take()
        return batch

    def receive(self, *, block: bool) -> None:
        """Let all that is in the inbox wait; with `block`, once something is there."""
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
        """Run one batch and keep its answers.

        Raises WorkFailed where the logits are not finite numbers [batch, classes].
        """
        rows = [self.rows[index] for index in batch.indices]
        inputs = stack(rows, sequence=batch.sequence)
        answered = answers(self.run(inputs), inputs, classes=self.classes)
        for index, (prediction, margin) in zip(batch.indices, answered, strict=True):
            self.predictions[index], self.margins[index] = prediction, margin
        self.batches += 1
        if PIXELS not in inputs:
            real = sum(map(length, rows))
            self.tokens += real
            self.padded_tokens += inputs["input_ids"].size - real


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
