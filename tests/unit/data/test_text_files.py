import gzip
import json
import time
from pathlib import Path

import pandas
import pytest
from splits import prepare_splits, split_of
from tightrope.data.ranges import SPLITS
from tightrope.data.source import libraries, local_files
from tightrope.data.sources.text_files import read as read_files
from tightrope.errors import ArtifactError, ConfigError, TightropeError
from tightrope.inputs.encode import read_split
from tightrope.sources import regular
from tightrope.sources.table_header import column_names
from tightrope.sources.tables import read_columns

COLUMNS = {"text": "sentence", "label": "mood"}
ROWS = [(f"sentence number {i} ends here", "good" if i % 3 else "bad") for i in range(30)]


def frame(rows: list = ROWS) -> pandas.DataFrame:
    return pandas.DataFrame(rows, columns=["sentence", "mood"])


def read(pattern: Path):
    return read_files(f"files:{pattern}", str(pattern), columns=COLUMNS)


def write_table(path: Path, rows: list = ROWS) -> None:
    kind = path.name.removesuffix(".gz").rpartition(".")[2]
    if kind == "parquet":
        frame(rows).to_parquet(path)
    elif kind == "json":
        frame(rows).to_json(path, orient="records")
    elif kind == "jsonl":
        frame(rows).to_json(path, orient="records", lines=True)
    else:
        frame(rows).to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")


@pytest.mark.parametrize(
    "name", ["a.csv", "a.csv.gz", "a.tsv", "a.tsv.gz", "a.json", "a.jsonl.gz", "a.parquet"]
)
def test_every_format_gives_the_same_texts_and_labels(tmp_path: Path, name: str) -> None:
    write_table(tmp_path / name)
    material = read(tmp_path / name)
    assert material.labels == ["bad", "good"]
    assert material.train == [(text, int(mood == "good")) for text, mood in ROWS]
    assert material.evaluation is None


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "sentence,mood,sentence\na b,good,c d\n", "has 2 columns 'sentence'"),
        ("a.tsv", "sentence\tmood\tmood\na b\tgood\tbad\n", "has 2 columns 'mood'"),
        ("a.csv", "sentence,mood\na b,good\na\0b,bad\n", "has a NUL"),
        ("a.jsonl", '{"sentence": "a \\u0000 b", "mood": "bad"}\n', "row 1"),
    ],
)
def test_a_column_that_comes_twice_and_half_a_character_are_refused(
    tmp_path: Path, name: str, content: str, said: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(TightropeError, match=rf"{name}: .*{said}") as caught:
        read(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_table_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regular, "ALWAYS_ALLOWED", 10_000)
    monkeypatch.setattr(regular, "LARGEST_RATIO", 1)
    for name in ("a.csv.gz", "a.jsonl.gz"):
        write_table(tmp_path / name, [("the same again", "good")] * 20_000)
        with pytest.raises(TightropeError, match=rf"{name}: unpacks to more than 10000 bytes"):
            read(tmp_path / name)


def test_half_of_a_gzip_file_is_one_line(tmp_path: Path) -> None:
    write_table(tmp_path / "a.csv.gz", ROWS)
    (tmp_path / "a.csv.gz").write_bytes((tmp_path / "a.csv.gz").read_bytes()[:-20])
    for attempt in (lambda file: column_names(file, whole=True), read):
        with pytest.raises(TightropeError, match=r"a\.csv\.gz: cannot be read as a table"):
            attempt(tmp_path / "a.csv.gz")


def test_a_pipe_or_a_device_in_the_place_of_a_table_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.csv").symlink_to("/dev/zero")
    with pytest.raises(ArtifactError, match=r"a\.csv: a pipe or device is not read"):
        read_columns(tmp_path / "a.csv", COLUMNS)
    with pytest.raises(ConfigError, match="no file matches"):
        read(tmp_path / "a.csv")


def test_words_of_the_file_names_say_which_split_a_file_is(tmp_path: Path) -> None:
    write_table(tmp_path / "my_train-00.csv", ROWS[:10])
    write_table(tmp_path / "my_train-01.csv", ROWS[10:20])
    write_table(tmp_path / "my_validation.csv", ROWS[20:25])
    write_table(tmp_path / "my_test.csv", ROWS[25:])
    material = read(tmp_path / "my_*.csv")
    assert [text for text, _ in material.train] == [text for text, _ in ROWS[:20]]
    assert [text for text, _ in material.evaluation] == [text for text, _ in ROWS[20:25]]


def test_the_test_file_is_the_evaluation_where_there_is_no_other(tmp_path: Path) -> None:
    write_table(tmp_path / "training.csv", ROWS[:20])
    write_table(tmp_path / "test.csv", ROWS[20:])
    assert len(read(tmp_path / "*.csv").evaluation) == 10


def test_a_file_that_fits_no_split_is_named(tmp_path: Path) -> None:
    for name in ("train.csv", "dev.csv", "notes.csv"):
        write_table(tmp_path / name)
    with pytest.raises(TightropeError, match=r"notes\.csv: its name says neither"):
        read(tmp_path / "*.csv")


def test_quotes_and_words_like_na_are_part_of_a_tsv_text(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text('sentence\tmood\n"quoted and open\t1\nNA\t0\nnull \t1\n')
    assert read(file).train == [('"quoted and open', 1), ("NA", 0), ("null", 1)]


def test_whole_numbers_are_labels_in_their_order(tmp_path: Path) -> None:
    write_table(tmp_path / "a.csv", [("ten", 10), ("two", 2), ("one", 1)])
    material = read(tmp_path / "a.csv")
    assert (material.labels, material.train) == (
        ["1", "2", "10"],
        [("ten", 2), ("two", 1), ("one", 0)],
    )


def test_a_missing_column_is_an_error_that_names_those_there_are(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,mood\nhello,1\n")
    with pytest.raises(TightropeError, match="no column 'sentence', only text, mood; set columns"):
        read(tmp_path / "a.csv")


FORMATS = pytest.mark.parametrize("kind", ["csv", "tsv.gz", "json", "jsonl", "parquet"])


@FORMATS
@pytest.mark.parametrize("blank", [None, float("nan"), "", " \t"], ids=repr)
@pytest.mark.parametrize(("column", "place"), [("sentence", 0), ("mood", 1)])
def test_a_blank_text_or_label_is_an_error_with_its_row_and_their_number(
    tmp_path: Path, kind: str, blank: object, column: str, place: int
) -> None:
    rows: list[list] = [list(row) for row in ROWS]
    for number in (4, 17):
        rows[number - 1][place] = " " if kind == "tsv.gz" and blank == " \t" else blank
    write_table(tmp_path / f"a.{kind}", rows)
    said = rf"a\.{kind}: column '{column}' is blank in 2 of 30 rows, first in row 4 .*: fill"
    with pytest.raises(TightropeError, match=said):
        read(tmp_path / f"a.{kind}")


def test_a_row_of_a_json_file_without_the_key_is_blank(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"sentence": "one", "mood": 1}\n{"mood": 0}\n')
    with pytest.raises(TightropeError, match="'sentence' is blank in 1 of 2 rows, first in row 2"):
        read(tmp_path / "a.jsonl")


@pytest.mark.parametrize("text", [5, 2.5, True, ["a", "b"], {"a": "b"}], ids=repr)
def test_a_text_that_is_none_is_an_error_with_its_row(tmp_path: Path, text: object) -> None:
    rows = [{"sentence": "one", "mood": 1}, {"sentence": text, "mood": 0}]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    with pytest.raises(TightropeError, match=r"a\.json: row 2 .*'sentence' holds .*, no text; set"):
        read(tmp_path / "a.json")


def test_bytes_of_a_parquet_file_are_no_texts(tmp_path: Path) -> None:
    write_table(tmp_path / "a.parquet", [(b"one", 0), (b"\xff", 1)])
    with pytest.raises(TightropeError, match=r"a\.parquet: row 1 .*'sentence' holds b'one', no te"):
        read(tmp_path / "a.parquet")


@FORMATS
def test_a_column_of_nothing_but_numbers_holds_no_texts(tmp_path: Path, kind: str) -> None:
    write_table(tmp_path / f"a.{kind}", [(5, "one text"), (-2.5, "another"), (1000, "a third")])
    with pytest.raises(
        TightropeError, match=rf"a\.{kind}: .*column 'sentence' holds .*set columns"
    ):
        read(tmp_path / f"a.{kind}")


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_a_number_among_texts_is_a_text(tmp_path: Path, kind: str) -> None:
    write_table(tmp_path / f"a.{kind}", [("10", 1), ("ten of ten", 1), ("nan", 0)])
    assert [text for text, _ in read(tmp_path / f"a.{kind}").train] == ["10", "ten of ten", "nan"]


@pytest.mark.parametrize("label", [0.5, [1], {"a": 1}], ids=repr)
def test_a_label_is_a_whole_number_or_a_name(tmp_path: Path, label: object) -> None:
    rows = [{"sentence": "one", "mood": 1}, {"sentence": "two", "mood": label}]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    with pytest.raises(TightropeError, match=r"a\.json: row 2 .*'mood' holds .*; labels are whole"):
        read(tmp_path / "a.json")


def test_a_date_is_no_label(tmp_path: Path) -> None:
    write_table(
        tmp_path / "a.parquet", [("one", pandas.Timestamp("2020-01-01")), ("two", None)][:1]
    )
    with pytest.raises(TightropeError, match=r"a\.parquet: row 1 .*'mood' holds .*; labels are"):
        read(tmp_path / "a.parquet")


def test_an_infinite_label_of_a_csv_is_an_error_with_its_row(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("sentence,mood\none,1\ntwo,inf\n")
    with pytest.raises(TightropeError, match=r"a\.csv: row 2 .*'mood' holds inf; labels are whole"):
        read(tmp_path / "a.csv")


@pytest.mark.parametrize("content", [b"", b"sentence,mood\n"])
def test_an_empty_file_is_an_error_that_names_it(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(TightropeError, match=r"a\.csv: "):
        read(tmp_path / "a.csv")


def test_a_truncated_file_is_an_error_of_one_line(tmp_path: Path) -> None:
    file = tmp_path / "a.csv.gz"
    whole = gzip.compress(frame().to_csv(index=False).encode())
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TightropeError, match="cannot be read as a table") as caught:
        read(file)
    assert "\n" not in str(caught.value)
    (tmp_path / "b.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(TightropeError, match="cannot be read as a table"):
        read(tmp_path / "b.parquet")


def test_a_pattern_without_matches_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no file matches"):
        local_files(f"files:{tmp_path}/*.csv")


def test_local_files_are_all_that_match_sorted(tmp_path: Path) -> None:
    for name in ("b.tsv", "a.tsv"):
        write_table(tmp_path / name)
    source = f"files:{tmp_path}/*.tsv"
    assert local_files(source) == [f"{tmp_path}/a.tsv", f"{tmp_path}/b.tsv"]
    assert libraries(source) == {"pandas": pandas.__version__}


def test_one_pool_is_split_and_written_as_ascii_lines(tmp_path: Path) -> None:
    rows = [(f"naïve {i} \u2028 sentence", i % 2) for i in range(50)]
    (tmp_path / "a.jsonl").write_text(
        "".join(json.dumps({"sentence": text, "mood": label}) + "\n" for text, label in rows)
    )
    manifest = tmp_path / "out" / "data.json"
    prepare_splits(
        manifest,
        source=f"files:{tmp_path}/a.jsonl",
        columns=COLUMNS,
        splits={"train": None, "evaluation": None},
        pool=8,
        seed=0,
    )
    sizes = {name: len(read_split(split_of(manifest, name))) for name in SPLITS}
    assert sizes == {"train": 32, "evaluation": 10, "calibration": 8, "timing": 50}
    assert all(
        "naïve" in example["text"] for example in read_split(split_of(manifest, "evaluation"))
    )


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (",".join(["a"] * 200_000), r"a\.csv: has more than 10000 columns"),
        ("x" * 2**21, r"a\.csv: its first line has more than 1048576 bytes"),
    ],
)
def test_a_table_that_is_far_too_wide_is_refused_at_once(
    tmp_path: Path, first: str, said: str
) -> None:
    (tmp_path / "a.csv").write_text(f"{first}\n")
    for read in (
        lambda file: column_names(file, whole=True),
        lambda file: read_columns(file, {"text": "text", "label": "label"}),
    ):
        began = time.monotonic()
        with pytest.raises(TightropeError, match=said):
            read(tmp_path / "a.csv")
        assert time.monotonic() - began < 10
