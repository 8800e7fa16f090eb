import sys

import pytest


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """PyTorch's two take ten times the CPU seconds where another process has a processor too."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
