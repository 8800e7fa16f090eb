import sys
from pathlib import Path

import pytest
from splits import prepare_splits, split_of
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import DataManifest
from tightrope.data.ranges import SPLITS
from tightrope.data.source import libraries, local_files
from tightrope.data.sources.docstrings import first_paragraph, masking_pattern, read_docstrings
from tightrope.data.splits import fingerprint
from tightrope.errors import ConfigError, TightropeError
from tightrope.inputs.encode import read_split

SOURCE = "docstrings:networkx,sklearn"
SIZES = {"train": 60, "evaluation": 31}


def prepare(folder: Path, source: str = SOURCE, seed: int = 0, **sizes: int) -> Path:
    manifest = folder / "data.json"
    splits = {**SIZES, **sizes}
    prepare_splits(manifest, source=source, columns={}, splits=splits, pool=20, seed=seed)
    return manifest


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare(tmp_path_factory.mktemp("docstrings"))


def test_labels_are_the_packages_in_the_order_of_the_source(data: Path) -> None:
    manifest = read_manifest(data, DataManifest)
    assert manifest["labels"] == ["networkx", "sklearn"]
    sizes = {name: len(read_split(split_of(data, name))) for name in SPLITS}
    assert sizes == {"train": 60, "evaluation": 31, "calibration": 20, "timing": 111}


def test_each_split_holds_as_many_texts_of_each_package(data: Path) -> None:
    for split in ("train", "evaluation", "calibration"):
        labels = [example["label"] for example in read_split(split_of(data, split))]
        assert abs(labels.count(0) - labels.count(1)) <= 1


def test_no_text_is_in_two_splits(data: Path) -> None:
    texts = [
        fingerprint(example["text"])
        for split in ("train", "evaluation", "calibration")
        for example in read_split(split_of(data, split))
    ]
    assert len(texts) == len(set(texts))


def test_package_names_and_aliases_are_masked_in_any_case(data: Path) -> None:
    for example in read_split(split_of(data, "train")):
        assert "networkx" not in example["text"].lower()
        assert "scikit-learn" not in example["text"].lower()
    mask = masking_pattern(["torch", "pandas"])
    assert mask.sub("_", "PyTorch, torchvision; pd.DataFrame, updates") == (
        "_, _vision; _.DataFrame, updates"
    )


def test_texts_are_first_paragraphs_of_30_to_400_characters(data: Path) -> None:
    assert first_paragraph("One\n    line.\n\n    Another.") == "One line."
    assert all(
        30 <= len(example["text"]) <= 400 for example in read_split(split_of(data, "evaluation"))
    )


def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_texts(
    data: Path, tmp_path: Path
) -> None:
    again = prepare(tmp_path / "again")
    assert again.read_bytes() == data.read_bytes()
    other = prepare(tmp_path / "other", seed=1)
    assert read_split(split_of(other, "evaluation")) != read_split(split_of(data, "evaluation"))


def test_packages_are_read_but_never_imported() -> None:
    before = set(sys.modules)
    material = read_docstrings("x", ["altair", "narwhals"], texts=50, seed=0)
    assert {label for _, label in material.train} == {0, 1}
    assert not {"altair", "narwhals"} & (set(sys.modules) - before)


def test_reading_stops_at_the_quota() -> None:
    material = read_docstrings("x", ["networkx", "sklearn"], texts=40, seed=0)
    assert 40 <= len(material.train) <= 46


def test_a_package_with_too_few_texts_is_an_error_that_names_the_key(tmp_path: Path) -> None:
    with pytest.raises(TightropeError, match=r"docstrings:.*splits\.train asks for 90000; lower"):
        prepare(tmp_path, "docstrings:tabulate,networkx", train=90_000)


def test_a_package_that_is_not_installed_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="no installed package 'no_such_package'"):
        local_files("docstrings:networkx,no_such_package")
    with pytest.raises(ConfigError, match="two or more different packages"):
        local_files("docstrings:networkx")


def test_libraries_are_the_versions_of_the_packages_that_are_read() -> None:
    import sklearn

    assert libraries("docstrings:sklearn,networkx")["sklearn"] == sklearn.__version__
