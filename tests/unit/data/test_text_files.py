import json
from pathlib import Path

import pandas
import pytest
from splits import prepare_splits, split_of
from table_files import table_file
from tightrope.data.source import libraries, local_files
from tightrope.data.sources.text_files import read as read_files
from tightrope.data.splits import SPLITS
from tightrope.errors import TightropeError
from tightrope.inputs.encode import read_split
from tightrope.sources import local
from tightrope.sources.tables import column_names, read_table

COLUMNS = {"text": "sentence", "label": "mood"}
ROWS = [(f"sentence number {i} ends here", "good" if i % 3 else "bad") for i in range(30)]


def read(pattern: Path):
    return read_files(f"files:{pattern}", str(pattern), columns=COLUMNS)


def write_table(path: Path, rows: list = ROWS) -> None:
    table_file(path, rows, ["sentence", "mood"])


@pytest.mark.parametrize("name", ["a.csv.gz", "a.tsv", "a.json", "a.jsonl", "a.parquet"])
def test_every_format_gives_the_same_texts_and_labels(tmp_path: Path, name: str) -> None:
    write_table(tmp_path / name)
    material = read(tmp_path / name)
    assert material.labels == ["bad", "good"]
    assert material.train == [(text, int(mood == "good")) for text, mood in ROWS]
    assert material.evaluation is None


def test_a_table_unpacks_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "ALWAYS_ALLOWED", 10_000)
    monkeypatch.setattr(local, "LARGEST_RATIO", 1)
    write_table(tmp_path / "a.csv.gz", [("the same again", "good")] * 20_000)
    with pytest.raises(TightropeError, match=r"a\.csv\.gz: unpacks to more than 10000 bytes"):
        read(tmp_path / "a.csv.gz")


def test_half_of_a_gzip_file_is_one_line(tmp_path: Path) -> None:
    write_table(tmp_path / "a.csv.gz")
    (tmp_path / "a.csv.gz").write_bytes((tmp_path / "a.csv.gz").read_bytes()[:-20])
    for attempt in (lambda file: column_names(file, whole=True), read):
        with pytest.raises(TightropeError, match=r"a\.csv\.gz: cannot be read as a table"):
            attempt(tmp_path / "a.csv.gz")


def test_words_of_the_file_names_say_which_split_a_file_is(tmp_path: Path) -> None:
    """The test file is the evaluation where there is no other."""
    names = ["my_train-00", "my_train-01", "my_test"]
    for number, name in enumerate(names):
        write_table(tmp_path / f"{name}.csv", ROWS[10 * number : 10 * number + 10])
    texts = [text for text, _ in ROWS]
    material = read(tmp_path / "my_*.csv")
    assert [text for text, _ in material.train] == texts[:20]
    assert [text for text, _ in material.evaluation] == texts[20:]
    write_table(tmp_path / "my_validation.csv", ROWS[:5])
    assert [text for text, _ in read(tmp_path / "my_*.csv").evaluation] == texts[:5]
    source = f"files:{tmp_path}/*.csv"
    assert local_files(source) == sorted(map(str, tmp_path.iterdir()))
    assert libraries(source) == {"pandas": pandas.__version__}
    write_table(tmp_path / "notes.csv")
    with pytest.raises(TightropeError, match=r"notes\.csv: its name says neither"):
        read(tmp_path / "*.csv")


def test_quotes_and_na_are_texts_and_whole_numbers_labels_in_order(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text('sentence\tmood\n"quoted and open\t10\nNA\t2\nnull \t1\n10\t10\n')
    material = read(file)
    assert material.labels == ["1", "2", "10"]
    assert material.train == [('"quoted and open', 2), ("NA", 1), ("null", 0), ("10", 2)]
    rows = [['say "C++" now', 0], ["C#", 1]]
    write_table(file, rows)  # as pandas quotes
    assert [text for text, _ in read(file).train] == [text for text, _ in rows]
    file = tmp_path / "a.csv"
    file.write_text("sentence,mood\nx,001\ny,01\nz,10\n")
    assert read(file).labels == ["001", "01", "10"]
    # whole numbers of a column in which one was missing
    file.write_text("sentence,mood\nx,1.0\ny,0.0\n")
    # the same label in another table
    (tmp_path / "dev.json").write_text(rows_with(mood="0"))
    assert read(tmp_path / "*.*[nv]").labels == ["0", "1"]


LINES = '{"sentence": "one", "mood": "good"}\n{"sentence": "two", "mood": "bad"}\n'
ARRAY = f"[{LINES.strip().replace(chr(10), ',')}]"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", f"\ufeff{LINES}"),
        ("a.json", LINES),
        ("a.json", LINES.replace("\n", "\n\n", 1)),
        ("a.jsonl", ARRAY),
        ("a.tsv", '\ufeff"sentence"\t"mood"\n"one"\t"good"\n"two"\t"bad"\n'),
        ("a.tsv", 'sentence\tmood\n"one"\t"good"\n"two"\t"bad"\n'),
        ("a.csv", 'sentence, mood\n"one", good\ntwo,bad \n'),
        ("a.csv", '"sentence","mood"\n"1","one","good"\n"2","two","bad"\n'),
    ],
)
def test_tables_of_others_are_read_as_meant(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert column_names(tmp_path / name, whole=True)[:2] == ["sentence", "mood"]
    material = read(tmp_path / name)
    assert material.labels == ["bad", "good"]
    assert material.train == [("one", 1), ("two", 0)]


def test_the_names_of_columns_are_the_same_when_they_are_looked_at_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text('sentence\t"mood"\none\tgood\ntwo\tbad\n')
    assert column_names(file, whole=True) == [*read_table(file, ["sentence"])]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["+1", "-1"], ["-1", "+1"]),
        ([" 10", " 2"], ["2", "10"]),
        (["LABEL_10", "LABEL_2"], ["LABEL_2", "LABEL_10"]),
        ([True, False], ["False", "True"]),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_labels_are_in_order(tmp_path: Path, name: str, labels: list, expected: list) -> None:
    write_table(tmp_path / name, [("one", labels[0]), ("two", labels[1])])
    assert read(tmp_path / name).labels == expected


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_blanks_and_numbers_in_the_place_of_texts_are_errors(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"a.{kind}"
    for place, column in enumerate(("sentence", "mood")):
        for blank in (None, "", " "):
            rows: list[list] = [list(row) for row in ROWS]
            rows[3][place] = rows[16][place] = blank
            write_table(file, rows)
            said = rf"{kind}: column '{column}' is blank in 2 of 30 rows, first in row 4 .*: fill"
            with pytest.raises(TightropeError, match=said):
                read(file)
    write_table(file, [(5, "one text"), (-2.5, "another"), (1000, "a third")])
    with pytest.raises(TightropeError, match=rf"{kind}: .*column 'sentence' holds .*set columns"):
        read(file)


def rows_with(**second: object) -> str:
    return json.dumps([{"sentence": "one", "mood": 1}, {"sentence": "two", "mood": 0, **second}])


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "sentence,mood,sentence\na b,good,c d\n", "has 2 columns 'sentence'"),
        ("a.csv", "sentence,mood\na b,good\na\0b,bad\n", "has a NUL"),
        ("a.jsonl", '{"sentence": "a \\u0000 b", "mood": "bad"}\n', "row 1"),
        ("a.csv", "text,mood\nhello,1\n", "no column 'sentence', only text, mood; set columns"),
        ("a.csv", "", "cannot be read as a table"),
        ("a.csv", "sentence,mood\na, b,good\nc, d,bad\n", "rows have more fields than the first"),
        ("a.csv", "sentence;mood\na, b;good\n", "has no ',' in its first line, but ';'; save"),
        ("a.csv", 'sentence,mood\n"a \\"b\\" c",good\n', "line 2: .*double the quotation marks"),
        ("a.csv", b"sentence,mood\ncaf\xe9,good\n", "table .*; save it as UTF-8"),
        ("a.csv", "sentence,mood\n", "has no rows"),
        ("a.csv", f"{'a,' * 200_000}\n", "has more than 10000 columns"),
        ("a.csv", f"{'x' * 2**21}\n", "its first line has more than 1048576 bytes"),
        ("b.parquet", "PAR1 and no more", "cannot be read as a table"),
        ("a.csv", "sentence,mood\none,1\ntwo,0.5\n", "row 2 .*'mood' holds 0.5; labels are whole"),
        ("a.json", rows_with(sentence=True), "row 2 .*'sentence' holds True, no text; set"),
        ("a.json", rows_with(mood=0.5), "row 2 .*'mood' holds 0.5; labels are whole"),
    ],
)
def test_a_bad_table_is_one_line(tmp_path, name: str, content: str | bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(TightropeError, match=rf"{name}: .*{said}"):
        read(tmp_path / name)


def test_one_pool_is_split_and_written_as_ascii_lines(tmp_path: Path) -> None:
    rows = [{"sentence": f"naïve {i} \u2028 sentence", "mood": i % 2} for i in range(50)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    manifest = tmp_path / "out" / "data.json"
    source, sizes = f"files:{tmp_path}/a.jsonl", {"train": None, "evaluation": None}
    prepare_splits(manifest, source=source, columns=COLUMNS, splits=sizes, pool=8, seed=0)
    parts = {name: read_split(split_of(manifest, name)) for name in SPLITS}
    sizes = {name: len(part) for name, part in parts.items()}
    assert sizes == {"train": 32, "evaluation": 10, "calibration": 8, "timing": 50}
    assert all("naïve" in example["text"] for example in parts["evaluation"])
    assert (manifest.parent / "pool.jsonl").read_bytes().isascii()
