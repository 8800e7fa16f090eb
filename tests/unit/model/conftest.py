import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Two take up to ten times the CPU seconds where another process has the second processor."""
    torch.set_num_threads(1)
