"""Batches of example indices drawn from a seed, and prefetching of batches."""

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, pairwise
from typing import TypeVar

Result = TypeVar("Result")

# Batches per window that is sorted by length: saves padding, but keeps examples mixed.
WINDOW = 32
# Fraction of the train split held out for validation if the recipe sets `validate`.
VALIDATION_FRACTION = 0.1

Batch = list[int]


def draw_epochs(
    count: int, lengths: Sequence[int] | None, *, size: int, epochs: float, seed: int
) -> Iterator[list[Batch]]:
    """Yield each epoch's batches of indices of `count` examples; the last epoch may be partial.

    With `lengths`, batches hold examples of similar length, in shuffled order; without, examples
    are shuffled. The last batch of a window or an epoch may be smaller than `size`.
    """
    generator = random.Random(seed)
    remaining = max(1, round(epochs * count))
    while remaining > 0:
        order = generator.sample(range(count), count)[:remaining]
        remaining -= len(order)
        if lengths is None:
            yield chunks(order, size)
        else:
            yield list(by_length(order, lengths, size, generator))


def by_length(
    order: list[int], lengths: Sequence[int], size: int, generator: random.Random
) -> Iterator[Batch]:
    """Yield batches of examples of similar length within windows of `order`."""
    for window in chunks(order, size * WINDOW):
        batches = chunks(sorted(window, key=lambda i: (lengths[i], i)), size)
        generator.shuffle(batches)
        yield from batches


def chunks(order: list[int], size: int) -> list[Batch]:
    """Split `order` into chunks of `size`; the last may be shorter."""
    return [order[start : start + size] for start in range(0, len(order), size)]


def split_micro_batches(batch: Batch, micro_batches: int) -> list[Batch]:
    """Split a batch into that many micro-batches of about equal size, at most one per example."""
    micro_batches = min(micro_batches, len(batch))
    edges = [len(batch) * number // micro_batches for number in range(micro_batches + 1)]
    return [batch[low:high] for low, high in pairwise(edges)]


def draw_validation(count: int, seed: int) -> tuple[list[int], list[int]]:
    """Split `count` indices into train and validation; the seed draws a tenth for validation."""
    size = max(1, round(VALIDATION_FRACTION * count))
    validation = set(random.Random(f"{seed} judged").sample(range(count), size))
    return [index for index in range(count) if index not in validation], sorted(validation)


def prefetched(tasks: Iterable[Callable[[], Result]], *, ahead: int) -> Iterator[Result]:
    """Yield the results of `tasks` in order; up to `ahead` tasks run in threads in advance.

    With 0, each task runs when its result is requested. A task's exception is raised at its
    position.
    """
    if not ahead:
        yield from (task() for task in tasks)
        return
    remaining = iter(tasks)
    with ThreadPoolExecutor(ahead) as pool:
        waiting = deque(pool.submit(task) for task in islice(remaining, ahead))
        while waiting:
            result = waiting.popleft().result()
            waiting += [pool.submit(task) for task in islice(remaining, 1)]
            yield result
