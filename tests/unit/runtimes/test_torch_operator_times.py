"""Times of PyTorch's operators, where the machine stops some of them."""

from collections.abc import Callable
from typing import Any

import torch
from tightrope.runtimes.torch.operator_times import time_of

SIDE = 16


def profiled(work: Callable[[], Any]) -> Any:
    """The events of what PyTorch does there on the CPU."""
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=cpu, record_shapes=True) as profile:
        work()
    return profile.events()


def test_a_product_counts_once_however_long_the_operator_around_it_was_stopped() -> None:
    x, weight, bias = torch.ones(SIDE, SIDE), torch.ones(SIDE, SIDE), torch.ones(SIDE)
    events = profiled(lambda: torch.nn.functional.linear(x, weight, bias))
    (linear,) = (event for event in events if event.name == "aten::linear")
    # as if another process had run between two operators
    linear.time_range.end += 1e6
    assert linear.self_cpu_time_total > sum(one.cpu_time_total for one in linear.cpu_children)
    products = [one for event in events if (one := time_of(event)).group == "products"]
    assert [(one.kind, one.operations) for one in products] == [("addmm", 2.0 * SIDE**3)]


def test_an_operator_that_converts_its_number_works_itself() -> None:
    x = torch.ones(256, 256)
    (add,) = (event for event in profiled(lambda: x + 1) if event.name == "aten::add")
    # as if only its work had taken time
    add.time_range.end += 1e6
    assert add.cpu_children
    assert time_of(add).group == "elementwise"
