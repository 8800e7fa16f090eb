"""Results that threads make ahead of the one who takes them."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Result = TypeVar("Result")


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
