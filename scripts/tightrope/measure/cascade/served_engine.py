"""A model alone or a cascade in a child process: it answers splits, then blocks in turn."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tightrope.measure.cascade.engine import Example, Reply, batches_of
from tightrope.measure.cascade.threshold import confidences
from tightrope.measure.logits import check_rows
from tightrope.measure.timed_engine import TimedEngine

Serve = Callable[[Sequence[Example]], Reply]


class Pairs(Sequence[Example]):
    """Examples of one split, encoded for the small and for the large model."""

    def __init__(self, small: Sequence[Any], large: Sequence[Any]) -> None:
        self.encoded = small, large

    def __len__(self) -> int:
        return len(self.encoded[0])

    def __getitem__(self, index: Any) -> Any:
        """Return one example, or a list of those of a slice; images are decoded now."""
        if isinstance(index, slice):
            return list(zip(*(rows[index] for rows in self.encoded), strict=True))
        return tuple(rows[index] for rows in self.encoded)


class ServedEngine(TimedEngine):
    """A timed engine whose inputs are batches of examples, in blocks that are run in turn.

    `load` returns what serves a batch, and the seconds of import and load; it runs in the child.
    Answers are logits of `classes`.
    """

    def __init__(
        self,
        load: Callable[[], tuple[Serve, dict[str, float]]],
        splits: Mapping[str, Sequence[Example]],
        processors: list[int],
        *,
        batch: int,
        classes: int,
        device: str,
    ) -> None:
        super().__init__(load, [], processors, device=device)
        self.splits = splits
        self.batch = batch
        self.classes = classes
        self.turn = 0

    def load(self) -> dict[str, float]:
        """Load, see `TimedEngine.load`; a call then answers all batches of a block."""
        seconds = super().load()
        self.serve: Serve = self.run
        self.run = self.serve_all
        return seconds

    def serve_all(self, batches: Sequence[Sequence[Example]]) -> None:
        """Answer batch after batch."""
        for batch in batches:
            self.serve(batch)

    def answers(self, split: str) -> dict[str, Any]:
        """Answer a split in its order: `predictions`, `confidences`, `escalated`, and `seconds`.

        The seconds are of the second half of the batches, because the first call of each shape
        takes longer. Raises WorkFailed for logits that cannot be right.
        """
        replies: list[Reply] = []
        spent: list[float] = []
        for batch in batches_of(self.splits[split], self.batch):
            began = time.perf_counter()
            reply = self.serve(batch)
            spent.append(time.perf_counter() - began)
            check_rows(reply.logits, len(batch), classes=self.classes)
            replies.append(Reply(np.array(reply.logits), reply.escalated))
        logits = np.concatenate([reply.logits for reply in replies])
        return {
            "predictions": logits.argmax(axis=1).tolist(),
            "confidences": confidences(logits).tolist(),
            "escalated": np.concatenate([reply.escalated for reply in replies]).tolist(),
            "seconds": spent[len(spent) // 2 :],
        }

    def prepare(self, split: str, batches: int, blocks: int) -> int:
        """Make blocks of so many whole batches of a split; return the examples of a block.

        There are at most `blocks`, fewer where the split is smaller, and at least one.
        """
        examples = self.splits[split]
        size = min(self.batch * batches, len(examples))
        count = max(1, min(blocks, len(examples) // size))
        self.inputs = [
            batches_of(examples[number * size : (number + 1) * size], self.batch)
            for number in range(count)
        ]
        self.first_s, self.typical_s = [0.0] * count, [0.0] * count
        return size

    def block(self, index: int, seconds: float, calls: int, limit: float) -> dict[str, Any]:
        """Time the next block once, after its first batch as a lead-in; see `TimedEngine.block`.

        The other arguments have no effect: engines that are asked in rounds all run the same block.
        """
        place = self.turn % len(self.inputs)
        self.turn += 1
        self.serve(self.inputs[place][0])
        return super().block(place, 0.0, 1, limit)
