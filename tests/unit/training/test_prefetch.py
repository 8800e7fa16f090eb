import threading
import time

import pytest
from tightrope.training.batches import prefetched


@pytest.mark.parametrize("ahead", [0, 1, 3, 50])
def test_results_come_in_the_order_of_the_tasks(ahead: int) -> None:
    def task(number: int) -> int:
        time.sleep(0.002 * (number % 3))
        return number

    tasks = (lambda number=number: task(number) for number in range(20))
    assert list(prefetched(tasks, ahead=ahead)) == list(range(20))


def test_no_more_are_made_than_asked_for_ahead() -> None:
    made = []
    results = prefetched((lambda n=n: made.append(n) for n in range(20)), ahead=3)
    next(results)
    time.sleep(0.05)
    assert sorted(made) == [0, 1, 2, 3]
    results.close()


def test_the_error_of_a_task_is_raised_in_its_place() -> None:
    tasks = [lambda: threading.current_thread().name, lambda: 1 // 0, lambda: "never"]
    results = prefetched(tasks, ahead=2)
    assert next(results) != threading.current_thread().name
    with pytest.raises(ZeroDivisionError):
        next(results)
