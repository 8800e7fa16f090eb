"""Times of PyTorch's operators, where the machine stops some of them."""

import torch
from tightrope.runtimes.torch.operator_times import time_of

SIDE = 16


def test_a_product_counts_once_however_long_the_operator_around_it_was_stopped() -> None:
    x, weight = torch.ones(SIDE, SIDE), torch.ones(SIDE, SIDE)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
    ) as profile:
        torch.nn.functional.linear(x, weight, torch.ones(SIDE))
    events = profile.events()
    (linear,) = (event for event in events if event.name == "aten::linear")
    # as if another process had run between two operators
    linear.time_range.end += 1e6
    assert linear.self_cpu_time_total > sum(one.cpu_time_total for one in linear.cpu_children)
    products = [one for event in events if (one := time_of(event)).group == "products"]
    assert [(one.kind, one.operations) for one in products] == [("addmm", 2.0 * SIDE**3)]


def test_an_operator_that_converts_its_number_works_itself() -> None:
    x = torch.ones(256, 256)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
    ) as profile:
        _ = x + 1
    events = profile.events()
    (add,) = (event for event in events if event.name == "aten::add")
    # as if only its work had taken time
    add.time_range.end += 1e6
    assert add.cpu_children
    assert time_of(add).group == "elementwise"
