"""Driver libraries that the tests of a GPU share."""

from pathlib import Path

import pytest
from nvml_driver import build_driver


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the libraries."""
    folder = tmp_path_factory.mktemp("driver")
    build_driver(folder)
    return folder
