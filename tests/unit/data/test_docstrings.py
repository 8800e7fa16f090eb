import gc
import re
import sys
from pathlib import Path

import pytest
import sklearn
from splits import prepare_splits, split_of
from tightrope.data.source import libraries, local_files
from tightrope.data.sources.docstrings import first_paragraph, masking_pattern, read
from tightrope.errors import ConfigError
from tightrope.inputs.encode import read_split

SOURCE = "docstrings:networkx,sklearn"


def prepare(folder: Path, seed: int = 0) -> Path:
    manifest, splits = folder / "data.json", {"train": 60, "evaluation": 31}
    prepare_splits(manifest, source=SOURCE, columns={}, splits=splits, pool=20, seed=seed)
    return manifest


@pytest.fixture(scope="module", autouse=True)
def no_sessions() -> None:
    """Packages are read in forks: one that freed an earlier session would wait for its threads."""
    gc.collect()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare(tmp_path_factory.mktemp("docstrings"))


def test_names_and_aliases_are_masked_in_the_first_paragraph() -> None:
    assert first_paragraph("One\n    line.\n\n    Another.") == "One line."
    mask = masking_pattern(["torch", "pandas"])
    assert mask.sub("_", "PyTorch, torchvision; pd.DataFrame, updates") == (
        "_, _vision; _.DataFrame, updates"
    )


def test_bytes_are_those_of_the_seed(data: Path, tmp_path: Path) -> None:
    again = prepare(tmp_path / "again")
    assert again.read_bytes() == data.read_bytes()
    other = prepare(tmp_path / "other", seed=1)
    assert read_split(split_of(other, "evaluation")) != read_split(split_of(data, "evaluation"))


def test_packages_are_read_up_to_the_quota_but_never_imported() -> None:
    before = set(sys.modules)
    material = read("x", "altair, narwhals", texts=50, seed=0)
    assert {label for _, label in material.train} == {0, 1}
    assert 50 <= len(material.train) <= 56
    texts = [text for text, _ in material.train]
    assert all(30 <= len(text) <= 400 for text in texts)
    # which do not say what their labels are
    assert not [text for text in texts if re.search("altair|narwhals", text, re.IGNORECASE)]
    assert not {"altair", "narwhals"} & (set(sys.modules) - before)


def test_packages_are_named_with_their_versions_and_two_must_be_installed() -> None:
    assert libraries("docstrings:sklearn,networkx")["sklearn"] == sklearn.__version__
    with pytest.raises(ConfigError, match="no installed package 'no_such_package'"):
        local_files("docstrings:networkx,no_such_package")
    with pytest.raises(ConfigError, match="two or more different packages"):
        local_files("docstrings:networkx")
