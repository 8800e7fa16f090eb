"""Dynamic batching: samples that wait when the engine is free form its next batch, padded."""

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from queue import Empty, SimpleQueue
from typing import Any

from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays, length, stack

# an engine: from inputs to the class and the margin (highest logit minus the second) of each row
Answer = Callable[[Arrays], list[tuple[int, float]]]


class Serving:
    """Engine that answers queries in batches, in the thread that calls `work`.

    Other threads put lists of LoadGen's `QuerySample` into `inbox`, and None after the last. They
    wait in order of arrival, in one queue per length of `padded`, to which the sample of that index
    is padded (None: to the longest of its batch). The next batch, of at most `batch` samples, comes
    from the queue whose first sample has waited longest, so no sample waits forever, and never
    mixes lengths.

    For each index of `rows`, `predictions` and `margins` hold the latest answer, -1 and 0 before
    the first. `tokens` counts tokens of samples, `padded_tokens` those added by padding; of images
    they are tokens of equal memory cost.
    """

    def __init__(
        self, answer: Answer, rows: Sequence[Arrays], padded: Sequence[int | None], *, batch: int
    ) -> None:
        self.answer = answer
        self.rows = rows
        self.padded = padded
        self.batch = batch
        self.inbox: SimpleQueue[list[Any] | None] = SimpleQueue()
        self.open = True
        self.arrived = 0
        self.queues: dict[int | None, deque[tuple[int, Any]]] = {}
        self.predictions = [-1] * len(rows)
        self.margins = [0.0] * len(rows)
        self.batches = self.tokens = self.padded_tokens = 0

    def work(self, complete: Callable[[list[int]], object]) -> None:
        """Answer queries until the inbox holds None; call `complete` with the ids of each batch.

        After an error of the engine, all queries are completed without an answer, because LoadGen
        would wait for them forever. The error is raised at the end.
        """
        failed: BaseException | None = None
        while batch := self.next_batch():
            if failed is None:
                try:
                    self.run([one.index for one in batch])
                except BaseException as error:  # even SystemExit: open queries must be completed
                    failed = error
            complete([one.id for one in batch])
        if failed is not None:
            raise failed

    def next_batch(self) -> list[Any]:
        """Return the next batch of the queries received so far, an empty one after the last."""
        self.receive()
        if not self.queues:
            return []
        padded = min(self.queues, key=lambda one: self.queues[one][0][0])
        queue = self.queues[padded]
        batch = [queue.popleft()[1] for _ in range(min(self.batch, len(queue)))]
        if not queue:
            del self.queues[padded]
        return batch

    def receive(self) -> None:
        """Move all queries of the inbox to the queues; where they are empty, wait for it."""
        while self.open:
            try:
                queries = self.inbox.get(block=not self.queues)
            except Empty:
                return
            self.open = queries is not None
            for query in queries or ():
                queue = self.queues.setdefault(self.padded[query.index], deque())
                queue.append((self.arrived, query))
                self.arrived += 1

    def run(self, indices: Sequence[int]) -> None:
        """Run samples of one padded length, and store their predictions and margins.

        Raises WorkFailed unless the logits are finite numbers [batch, classes].
        """
        rows, sequence = [self.rows[index] for index in indices], self.padded[indices[0]]
        answered = self.answer(stack(rows, sequence=sequence))
        for index, (prediction, margin) in zip(indices, answered, strict=True):
            self.predictions[index], self.margins[index] = prediction, margin
        self.batches += 1
        lengths = [length(row) for row in rows]
        self.tokens += sum(lengths)
        self.padded_tokens += len(lengths) * (sequence or max(lengths)) - sum(lengths)


def bucket_edges(lengths: Iterable[int], count: int) -> list[int]:
    """Return the `count` edges, ascending, that minimize the padded tokens over all `lengths`.

    A length is padded to the smallest edge that is not shorter; the last edge is the longest
    length. Fewer distinct lengths give fewer edges. The solution is exact: optimal partition of a
    sorted line by dynamic programming (Fisher 1958, "On Grouping for Maximum Homogeneity"; Wang and
    Song 2011, "Ckmeans.1d.dp"), in O(count * distinct lengths squared). Raises TightropeError for
    no lengths or a `count` below 1.
    """
    histogram = sorted(Counter(lengths).items())
    if not histogram or count < 1:
        raise TightropeError(
            f"{count} buckets for {len(histogram)} distinct lengths: at least one of each is needed"
        )
    edges = [length for length, _ in histogram]
    samples = [0, *accumulate(number for _, number in histogram)]  # of the n shortest lengths

    def tokens(start: int, end: int) -> int:
        return edges[end - 1] * (samples[end] - samples[start])

    # tokens and edges of the best partition of the n shortest lengths; each iteration adds a bucket
    best: list[tuple[int, list[int]]] = [(0, [])]
    best += [(tokens(0, end), [edges[end - 1]]) for end in range(1, len(edges) + 1)]
    for _ in range(min(count, len(edges)) - 1):
        finer = best[:1]
        for end in range(1, len(best)):
            total, start = min((best[start][0] + tokens(start, end), start) for start in range(end))
            finer.append((total, [*best[start][1], edges[end - 1]]))
        best = finer
    return best[-1][1]


def padded_lengths(
    padding: str, lengths: Sequence[int], *, max_sequence: int, edges: Sequence[int]
) -> list[int | None]:
    """Return the padded length of each sample in tokens; None: the longest of its batch.

    `fixed`: `max_sequence`; `longest` and, of images, `none`: None; `bucketed`: the smallest of the
    ascending `edges` that is not shorter. Raises TightropeError for a length beyond the last.
    """
    if padding == "fixed":
        return [max_sequence] * len(lengths)
    if padding != "bucketed":
        return [None] * len(lengths)
    if (longest := max(lengths)) > edges[-1]:
        raise TightropeError(
            f"{longest} tokens: the buckets hold 1 to {edges[-1]}; choose edges from all lengths"
        )
    return [edges[bisect_left(edges, length)] for length in lengths]
