"""Images of every kind of source become the same kind of splits, or one line that names them."""

import os
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from archive_files import pack
from datasets import ClassLabel, Dataset, DatasetDict, Features, Image, Value
from small_images import class_folders, encoded, noise
from splits import prepare_splits, split_of
from table_files import table_file
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import DataManifest
from tightrope.data import image_store
from tightrope.data.source import libraries, local_files
from tightrope.data.sources.hub import material_of
from tightrope.errors import ConfigError, TightropeError
from tightrope.inputs.encode import ImageSplit, read_split
from tightrope.inputs.images import decode_rgb
from tightrope.signature import IMAGE

SPLITS = ("train", "evaluation", "calibration")
CLASSES = ("cat", "dog")
IN_A_CLASS = ("cat/images", "pets")
ZIPS = ("train.zip", "dev.zip", "/*.zip")


def image(seed: int) -> bytes:
    return encoded(noise(8, 8, seed=seed))


def prepare(target: Path, source: str, **options: Any) -> dict[str, Any]:
    """The manifest; columns and sizes as they are by default, a pool of 4."""
    keys: dict[str, Any] = {
        **{"columns": {"text": "text", "image": "image", "label": "label"}, "task": IMAGE},
        **{"splits": {"train": None, "evaluation": None}, "pool": 4, "seed": 0, **options},
    }
    prepare_splits(target / "data.json", source=source, **keys)
    return read_manifest(target / "data.json", DataManifest)


def examples_of(target: Path, split: str) -> list[dict[str, Any]]:
    return list(read_split(split_of(target / "data.json", split)))


def names_of(target: Path, split: str) -> list[str]:
    return [example["name"] for example in examples_of(target, split)]


def files_of(top: Path) -> dict[str, bytes]:
    files = sorted(path for path in top.rglob("*") if path.is_file())
    return {path.relative_to(top).as_posix(): path.read_bytes() for path in files}


def error_of(target: Path, source: str, **options: Any) -> str:
    """What it says; nothing may be left in the target."""
    with pytest.raises(TightropeError) as caught:
        prepare(target, source, **options)
    assert list(target.iterdir()) == [] if target.exists() else True
    return str(caught.value)


def test_class_folders_are_split_with_every_image_in_one_place(tmp_path: Path) -> None:
    source = f"files:{class_folders(tmp_path / 'pets')}"
    manifest = prepare(tmp_path / "out", source)
    assert (manifest["task"], manifest["labels"]) == (IMAGE, list(CLASSES))
    assert set(manifest["files"]) == {"pool.arrow"}
    parts = {split: examples_of(tmp_path / "out", split) for split in SPLITS}
    assert [len(part) for part in parts.values()] == [28, 8, 4]
    names = [example["name"] for part in parts.values() for example in part]
    assert sorted(names) == sorted(map(str, (tmp_path / "pets").rglob("*.png")))
    for part in parts.values():
        assert sorted(example["label"] for example in part[:4]) == [0, 0, 1, 1]
    first = parts["train"][0]
    assert first["image"] == Path(first["name"]).read_bytes()
    assert CLASSES[first["label"]] in first["name"]
    assert prepare(tmp_path / "again", source)["files"] == manifest["files"]
    assert prepare(tmp_path / "other", source, seed=1)["files"] != manifest["files"]


@pytest.mark.parametrize("place", ["pets/*/*.png", "pets/*", "a.zip", "a.tar.gz"])
def test_a_pattern_and_an_archive_give_the_splits_of_the_folder(tmp_path: Path, place: str) -> None:
    files = files_of(class_folders(tmp_path / "pets"))
    archive = [] if place.startswith("pets") else [str(tmp_path / place)]
    if archive:
        pack(tmp_path / place, dict(reversed(files.items())))
    prepare(tmp_path / "out", f"files:{tmp_path}/{place}")
    prepare(tmp_path / "other", f"files:{tmp_path}/pets")
    for split in SPLITS:
        others = names_of(tmp_path / "other", split)
        for one in archive:
            others = [name.replace(f"{tmp_path}/pets", one) for name in others]
        assert names_of(tmp_path / "out", split) == others
    assert local_files(f"files:{tmp_path}/{place}", task=IMAGE) == archive


@pytest.mark.parametrize(
    ("train", "evaluation", "pattern"),
    [("pets/training", "pets/validation", "/pets"), ("train", "test", "/*/*"), ZIPS],
)
def test_the_folders_or_archives_say_which_split_an_image_is(tmp_path, train, evaluation, pattern):
    """Where a class may be called train, with a folder for its images, as in Tiny ImageNet."""
    top = tmp_path / "tests of a train"
    for place, first in ((train, 0), (evaluation, 100)):
        folder = class_folders(top / place.removesuffix(".zip"), first=first)
        (folder / "train").mkdir()
        (folder / "dog").rename(folder / "train/images")
        if place.endswith(".zip"):
            pack(top / place, files_of(folder))
            shutil.rmtree(folder)
    manifest = prepare(tmp_path / "out", f"files:{top}{pattern}")
    assert manifest["labels"] == ["cat", "train"]
    assert manifest["parts"]["evaluation"]["samples"] == 40
    assert all(f"/{evaluation}/" in name for name in names_of(tmp_path / "out", "evaluation"))
    for split in ("train", "calibration"):
        assert all(f"/{train}/" in name for name in names_of(tmp_path / "out", split))


def test_images_that_look_the_same_are_in_one_split_and_there_once(tmp_path: Path) -> None:
    for place, first in (("train", 0), ("val", 100)):
        class_folders(tmp_path / "a" / place, first=first)
    again = encoded(noise(8, 8, seed=101), "BMP")
    (tmp_path / "a/train/dog/again.bmp").write_bytes(again)
    (tmp_path / "a/train/dog/copy.png").write_bytes(image(1))
    (tmp_path / "a/train/cat/of-two-kinds.png").write_bytes(image(3))
    prepare(tmp_path / "out", f"files:{tmp_path}/a")
    parts = [examples_of(tmp_path / "out", split) for split in SPLITS]
    looks = [{decode_rgb(one["image"], name="").tobytes() for one in part} for part in parts]
    assert sum(map(len, looks)) == len(set.union(*looks))
    assert [len(part) for part in looks] == [35, 40, 4]
    assert image(3) not in [one["image"] for one in parts[0]]


def test_a_pipe_or_a_device_among_the_images_is_refused_at_once(tmp_path: Path) -> None:
    file = class_folders(tmp_path / "pets") / "cat/endless.png"
    for target, images, said in (
        (None, None, "a pipe or device is not read"),
        ("/dev/zero", None, "a link to /dev/zero, which is outside of "),
        ("/dev/zero", "/dev", "a pipe or device is not read"),
        ("nowhere.png", None, "cannot be read (No such file"),
    ):
        file.unlink(missing_ok=True)
        file.symlink_to(target) if target else os.mkfifo(file)
        error = error_of(tmp_path / "out", f"files:{tmp_path}/pets", images=images)
        assert error.startswith(f"{file}: {said}")


@pytest.mark.parametrize(
    ("place", "pattern"), [("cat/link.png", "pets/*/*.png"), ("bird", "pets/*"), IN_A_CLASS]
)
def test_a_link_to_a_place_that_nobody_named_is_refused(tmp_path, monkeypatch, place, pattern):
    class_folders(tmp_path / "run/pets")
    class_folders(tmp_path / "private")
    monkeypatch.chdir(tmp_path / "run")
    target = tmp_path / "private" / ("cat/00.png" if Path(place).suffix else "cat")
    (tmp_path / "run/pets" / place).symlink_to(target)
    said = f"pets/{place}: a link to {target}, which is outside of "
    assert error_of(tmp_path / "out", f"files:{pattern}").startswith(said)
    # a plan looks at what is there as well, but never beyond such a link
    known = libraries(f"files:{pattern}", task=IMAGE)
    (target.parent / "new.png").write_bytes(image(77))
    assert libraries(f"files:{pattern}", task=IMAGE) == known
    if place != "bird":  # the same images as those of cats
        images = str(tmp_path / "private")
        assert prepare(tmp_path / "out", "files:pets", images=images)["labels"] == list(CLASSES)


def test_links_lead_in_no_circle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # links may lead to anywhere in the folder of the run
    class_folders(tmp_path / "store/pets")
    (tmp_path / "chosen").mkdir()
    for name in CLASSES:
        (tmp_path / "chosen" / name).symlink_to(tmp_path / "store/pets" / name)
    (tmp_path / "store/pets/cat/circle").symlink_to(tmp_path / "store/pets")
    source = f"files:{tmp_path}/chosen"
    assert prepare(tmp_path / "out", source)["left_out"]["pool"]["empty"] == 0
    known = libraries(source, task=IMAGE)
    (tmp_path / "store/pets/cat/new.png").write_bytes(image(77))
    assert libraries(source, task=IMAGE) != known


def test_hidden_files_are_passed_over_and_others_that_are_no_images_counted(tmp_path: Path) -> None:
    class_folders(tmp_path / "pets")
    for name in (".DS_Store", "cat/._00.png", "cat/notes.txt", "LICENSE", ".git/x.png"):
        file = tmp_path / "pets" / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"no image")
    manifest = prepare(tmp_path / "out", f"files:{tmp_path}/pets")
    assert manifest["left_out"]["pool"]["empty"] == 2
    for first, part in ((100, "train"), (200, "test")):
        class_folders(tmp_path / "parts" / part, first=first)
    (tmp_path / "parts/test/cat/notes.txt").write_bytes(b"no image")
    lost = prepare(tmp_path / "in parts", f"files:{tmp_path}/parts")["left_out"]
    assert {part: one["empty"] for part, one in lost.items()} == {"train": 0, "evaluation": 1}
    files = {**files_of(tmp_path / "pets"), "__MACOSX/cat/._00.png": b"no image"}
    pack(tmp_path / "a.zip", files)
    assert (
        prepare(tmp_path / "again", f"files:{tmp_path}/a.zip")["left_out"] == manifest["left_out"]
    )


SPLIT = {"train/cat/1.png": image(1), "train/dog/2.png": image(2), "val/cat/3.png": image(3)}


@pytest.mark.parametrize(
    ("place", "files", "said"),
    [
        ("pets", {"dog/05.png": image(7)[:60]}, "pets/dog/05.png: .*broken or cut off"),
        ("pets", {"dog/05.png": bytes(2**26 + 1)}, "dog/05.png: .*more than 67108864 are not read"),
        ("a.tar.gz", {"cat/00.png": b"no image"}, "a.tar.gz/cat/00.png: no image that can be read"),
        ("pets", {"bird/notes.txt": b""}, "pets/bird: a folder without images; fill it or take"),
        ("pets", {"1.png": image(99)}, "pets/1.png: lies in no class folder"),
        ("pets/cat", {"cat/images/1.png": image(99)}, "cat/00.png: lies in no class folder"),
        ("pets/cat/*.png", {}, "needs two labels"),
        ("pets", {" cat/1.png": image(99)}, "differ only in space"),
        ("pets", {"\uff43at/1.png": image(99)}, "differ only in space or Unicode form"),
        ("pets", {"c\x1bat/1.png": image(99)}, "cannot be shown"),
        ("pets", SPLIT | {"more/cat/4.png": image(4)}, "more/cat/4.png: its name says neither tra"),
        ("pets", SPLIT | {"test/4.png": image(4)}, "test/4.png: lies in no class folder of test"),
        ("pets", SPLIT | {"val/bird/4.png": image(4)}, "bird/4.png: its label 'bird' is none of"),
    ],
)
def test_images_that_cannot_be_taken_are_named_in_one_line(tmp_path, place, files, said) -> None:
    """In a folder or an archive of class folders, in which these files are put."""
    known = {} if SPLIT.items() <= files.items() else files_of(class_folders(tmp_path / "pets"))
    if place.startswith("a."):
        pack(tmp_path / place, known | files)
    else:
        for name, content in files.items():
            file = tmp_path / "pets" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    assert re.search(said, error_of(tmp_path / "out", f"files:{tmp_path}/{place}"))


def write_table(top: Path, rows: list[Any], name: str = "labels.csv") -> Path:
    return table_file(top / name, rows, ["file", "kind"])


OUTSIDE = ("/etc/passwd", "../private/me.png", "cat/../../private/me.png")
COLUMNS = {"columns": {"text": "text", "image": "file", "label": "kind"}}


def flat_images(top: Path, count: int = 40) -> list[tuple[str, str]]:
    """Images in one folder, and the rows of a table that names them."""
    top.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (top / f"{number:02}.png").write_bytes(image(number))
    return [(f"{number:02}.png", CLASSES[number % 2]) for number in range(count)]


@pytest.mark.parametrize(
    ("images", "part"),
    [
        (None, "images/{}/"),
        ("images", "{}/"),
        ("images.zip", "{}/"),
        # in an archive by their names alone
        ("images.tar.gz", ""),
    ],
)
def test_a_table_names_images_beside_it(tmp_path: Path, images: str | None, part: str) -> None:
    rows = []
    for split, first, count in (("train", 0, 20), ("val", 100, 10)):
        (tmp_path / "images" / split).mkdir(parents=True)
        for number in range(first, first + count):
            (tmp_path / f"images/{split}/{number}.png").write_bytes(image(number))
            rows.append((f"{part.format(split)}{number}.png", CLASSES[number % 2]))
    archive = []
    if images not in (None, "images"):
        files = {**files_of(tmp_path / "images"), "unlabelled/none.png": b"is never read"}
        archive = [str(pack(tmp_path / images, files))]
    table = write_table(tmp_path, rows)
    prepare(tmp_path / "out", f"files:{table}", images=images, **COLUMNS)
    examples = examples_of(tmp_path / "out", "evaluation")
    assert len(examples) == 10
    for example in examples:
        assert f"/{images or 'images'}/val/" in example["name"]
        assert int(Path(example["name"]).stem) % 2 == example["label"]
    assert local_files(f"files:{table}", task=IMAGE, images=images) == [str(table), *archive]


def test_a_parquet_table_may_hold_the_images_themselves(tmp_path: Path) -> None:
    rows = [({"bytes": image(i), "path": None}, i % 2) for i in range(40)]
    table = write_table(tmp_path, rows, "all.parquet")
    known = prepare(tmp_path / "out", f"files:{table}", **COLUMNS)["files"]
    assert names_of(tmp_path / "out", "train")[0].startswith(f"{table}: row ")
    write_table(tmp_path, [(image(i), i % 2) for i in range(40)], "all.parquet")
    assert prepare(tmp_path / "again", f"files:{table}", **COLUMNS)["files"] == known


@pytest.mark.parametrize(
    ("row", "options", "said"),
    [
        (("no/such.png", "cat"), {}, "row 41 (not counting the header) names no/such.png: there i"),
        (("no/such.png", "cat"), {"images": "a.zip"}, "names no/such.png, which is not in"),
        (("00.png", "dog"), {}, "names 00.png, as"),
        *(((name, "dog"), {}, f"names {name}, which leads out of") for name in OUTSIDE),
        (("two.png", "dog"), {"images": "a.zip"}, "names two.png, and a/two.png and b/two.png of"),
        ((" ", "dog"), {}, "column 'file' is blank in 1 of 41 rows"),
        (("a.png", None), {}, "column 'kind' is blank in 1 of 41 rows"),
        (("a.png", "cat"), {"images": "no.zip"}, "images = no.zip: no folder and no archive"),
        (("a.png", "cat"), {"columns": {"image": "x", "label": "kind"}}, "has no column 'x', only"),
    ],
)
def test_a_bad_row_of_a_table_is_named(tmp_path, row, options, said) -> None:
    rows = flat_images(tmp_path)
    files = {name: image(int(name[:2])) for name, _ in rows}
    pack(tmp_path / "a.zip", files | {"a/two.png": image(1), "b/two.png": image(1)})
    table = write_table(tmp_path, [*rows, row])
    error = error_of(tmp_path / "out", f"files:{table}", **{**COLUMNS, **options})
    assert said in error
    assert str(table) in error
    table = write_table(tmp_path, [(name, number - 1) for number, (name, _) in enumerate(rows)])
    error = error_of(tmp_path / "out", f"files:{table}", **COLUMNS)
    assert error.startswith(f"{table}: row 1 (not counting the header): label -1; a class has")


def test_the_digits_are_eight_by_eight_and_grey(tmp_path: Path) -> None:
    manifest = prepare(tmp_path / "out", "digits", pool=100)
    assert manifest["labels"] == [str(digit) for digit in range(10)]
    assert manifest["parts"]["pool"]["samples"] == 1797
    digit = np.asarray(decode_rgb(examples_of(tmp_path / "out", "train")[0]["image"], name=""))
    assert (digit.shape, digit.min(), digit.max()) == ((8, 8, 3), 0, 255)
    assert set(libraries("digits", task=IMAGE)) == {"pillow", "pyarrow", "scikit-learn"}


HUB = "hub:a/b@main"
NAMES = {"image": "image", "label": "label"}


def test_images_of_the_hub_are_read_as_they_are_stored(tmp_path: Path) -> None:
    features = Features({"image": Image(), "label": ClassLabel(names=["bad", "good"])})
    images = [{"bytes": image(number), "path": None} for number in range(4)]
    # as of a data set of loose images
    (tmp_path / "0.png").write_bytes(image(0))
    images[0] = {"bytes": None, "path": str(tmp_path / "0.png")}
    table = Dataset.from_dict({"image": images, "label": [0, 1, 1, -1]}, features=features)
    tables = DatasetDict({"train": table, "valid": table.select(range(2))})
    with image_store.image_store(tmp_path) as store:
        material = material_of(HUB, tables, NAMES, store)
        rows = [{"image": row, "label": label} for row, label in material.train]
        store.write(tmp_path / "a.arrow", rows)
    assert (material.labels, material.left_out) == (["bad", "good"], {"train": 1, "evaluation": 0})
    assert [label for _, label in material.train] == [0, 1, 1]
    names = [row.name for row, _ in material.evaluation or []]
    assert names == [f"{HUB}: evaluation row 1", f"{HUB}: evaluation row 2"]
    found = [one["image"] for one in ImageSplit(tmp_path / "a.arrow")]
    assert found == [image(0), image(1), image(2)]


def test_what_is_no_image_of_the_hub_is_an_error(tmp_path: Path) -> None:
    features = Features({"image": Image(), "label": Value("int64")})
    rows = {"image": [{"bytes": b"x", "path": None}], "label": [3]}
    tables = DatasetDict({"train": Dataset.from_dict(rows, features=features)})
    for column, said in (
        ("img", "has no column 'img', only image, label; set columns"),
        ("label", "column 'label' holds int64, no images; set colu"),
        ("image", "train row 1: no image that can be read"),
    ):
        with (
            image_store.image_store(tmp_path) as store,
            pytest.raises(TightropeError, match=rf"^{HUB}: {said}"),
        ):
            material_of(HUB, tables, NAMES | {"image": column}, store)


@pytest.mark.parametrize(
    ("source", "images", "said"),
    [
        ("docstrings:numpy,scipy", None, "no data source of image-classification; there are dig"),
        ("files:no/such/*", None, "no file matches"),
        ("files:{}/*", None, "two kinds|no image"),
        ("files:{}/labels.csv", "no-such", "images = no-such: no folder and no archive"),
        ("files:{}/pets", "no-such", "images = no-such: no folder that links could lead to"),
        ("digits", "pets", "only a table of images"),
    ],
)
def test_an_impossible_source_of_images_is_a_config_error(tmp_path, source, images, said) -> None:
    class_folders(tmp_path / "pets", 2)
    (tmp_path / "notes.md").write_text("no image")
    (tmp_path / "labels.csv").write_text("image,label\n")
    with pytest.raises(ConfigError, match=said):
        local_files(source.format(tmp_path), task=IMAGE, images=images)
    with pytest.raises(ConfigError, match="digits: no data source of text-classification"):
        local_files("digits")


def test_images_of_a_table_are_known_by_a_digest_and_not_as_inputs(tmp_path: Path) -> None:
    """As those in folders are: tests/workflow/test_image_data_rules.py."""
    class_folders(tmp_path / "pets", 3)
    source = f"files:{write_table(tmp_path, [('pets/cat/00.png', 'cat')])}"
    assert local_files(source, task=IMAGE) == [str(tmp_path / "labels.csv")]
    known = libraries(source, task=IMAGE)
    (tmp_path / "pets/cat/00.png").write_bytes(image(77))
    found = libraries(source, task=IMAGE)
    assert {name for name in found if found[name] != known[name]} == {"images"}
