"""First of all: what is imported to collect the tests leaves a process that can fork.

A module that computes with PyTorch at its top starts OpenMP's threads, and each child that does
the same hangs or crashes. Convert such data to tensors in the tests.
"""

from tightrope.jobs.child import Limits, supervised


def total() -> float:
    """The sum of ones, by several threads."""
    import torch

    return float(torch.ones(1 << 20).sum())


def test_a_child_computes_with_several_threads() -> None:
    limits = Limits(memory_bytes=64e9, seconds=60)
    assert supervised(total, limits=limits) == 1 << 20
