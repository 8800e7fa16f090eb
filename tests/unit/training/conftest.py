"""What several files of tests train, made once."""

from pathlib import Path

import pytest
from tiny_training import RECIPE, prepare_source, prepare_texts, train


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder with random weights."""
    return prepare_source(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labelled texts, split."""
    return prepare_texts(tmp_path_factory.mktemp("texts"))


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, source: Path, texts: Path) -> Path:
    """A classifier that knows the labels."""
    return train(tmp_path_factory.mktemp("trained"), source, texts, RECIPE)
