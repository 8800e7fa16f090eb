"""Which examples each batch of a training holds, drawn by a seed, and made ahead of its step."""

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, pairwise
from typing import TypeVar

Result = TypeVar("Result")

# Batches that are sorted by length together: enough to save padding, few enough to stay mixed.
WINDOW = 32
# The part of the train split on which a training is judged, where its recipe says so.
JUDGED = 0.1

Batch = list[int]


def draw_epochs(
    count: int, lengths: Sequence[int] | None, *, size: int, epochs: float, seed: int
) -> Iterator[list[Batch]]:
    """The batches of each epoch, as indices of `count` examples; the last epoch may be a part.

    With `lengths`, examples of about one length are together, in mixed order; else they are
    shuffled. The last batch of a window, or of an epoch, may be smaller than `size`.
    """
    generator = random.Random(seed)
    left = max(1, round(epochs * count))
    while left > 0:
        order = generator.sample(range(count), count)[:left]
        left -= len(order)
        if lengths is None:
            yield cut(order, size)
        else:
            yield list(by_length(order, lengths, size, generator))


def by_length(
    order: list[int], lengths: Sequence[int], size: int, generator: random.Random
) -> Iterator[Batch]:
    """Batches of neighbours in length within windows of `order`."""
    for window in cut(order, size * WINDOW):
        batches = cut(sorted(window, key=lambda i: (lengths[i], i)), size)
        generator.shuffle(batches)
        yield from batches


def cut(order: list[int], size: int) -> list[Batch]:
    """`order` in pieces of `size`, the last one what is left."""
    return [order[start : start + size] for start in range(0, len(order), size)]


def in_parts(batch: Batch, parts: int) -> list[Batch]:
    """The batch in so many parts of equal size, or one more; fewer where it has fewer examples."""
    parts = min(parts, len(batch))
    edges = [len(batch) * number // parts for number in range(parts + 1)]
    return [batch[low:high] for low, high in pairwise(edges)]


def draw_judged(count: int, seed: int) -> tuple[list[int], list[int]]:
    """Indices of `count` examples: those to train on, and a tenth drawn by the seed to judge by."""
    judged = set(
        random.Random(f"{seed} judged").sample(range(count), max(1, round(JUDGED * count)))
    )
    return [index for index in range(count) if index not in judged], sorted(judged)


def prefetched(tasks: Iterable[Callable[[], Result]], *, ahead: int) -> Iterator[Result]:
    """What each task gives, in their order; up to so many are made `ahead`, each in a thread.

    With 0 each is made when it is asked for. Raises what a task raises, in its place.
    """
    if not ahead:
        yield from (task() for task in tasks)
        return
    left = iter(tasks)
    with ThreadPoolExecutor(ahead) as pool:
        waiting = deque(pool.submit(task) for task in islice(left, ahead))
        while waiting:
            result = waiting.popleft().result()
            waiting += [pool.submit(task) for task in islice(left, 1)]
            yield result
