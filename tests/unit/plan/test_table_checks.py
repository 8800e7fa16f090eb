"""Tables that cannot be used are named before anything runs, in one line."""

from pathlib import Path
from typing import Any

import pandas
import pytest
from tightrope.errors import ConfigError
from tightrope.plan.config import checked
from tightrope.plan.model_checks import LARGEST_BYTES

ROWS = [(f"headline {number} of the day", ("sport", "world")[number % 2]) for number in range(40)]
FORMATS = ["csv", "csv.gz", "tsv", "tsv.gz", "json", "jsonl", "jsonl.gz", "parquet"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def schema(repository: Path) -> Path:
    return repository / "config" / "schema.yaml"


def write(name: str, rows: list = ROWS, header: tuple[str, ...] = ("headline", "section")) -> Path:
    """A table in the format of its name."""
    frame, kind = pandas.DataFrame(rows, columns=list(header)), name.partition(".")[2]
    if kind == "parquet":
        frame.to_parquet(name)
    elif kind.startswith("json"):
        frame.to_json(name, orient="records", lines=kind.startswith("jsonl"))
    else:
        frame.to_csv(name, index=False, sep="\t" if kind.startswith("tsv") else ",")
    return Path(name)


def config(source: str, columns: dict[str, str], **model: Any) -> dict[str, Any]:
    keys = {"checkpoint": "scratch:bert", "data": f"files:{source}", "columns": columns, **model}
    return {"models": {"news": keys}}


def refused(document: dict[str, Any], schema: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        checked(document, schema)
    assert "\n" not in str(caught.value)
    return str(caught.value)


RIGHT = {"text": "headline", "label": "section"}


@pytest.mark.parametrize("kind", FORMATS)
def test_a_wrong_column_is_named_with_those_of_the_file_and_the_nearest(
    schema: Path, kind: str
) -> None:
    write(f"news.{kind}")
    checked(config(f"news.{kind}", RIGHT), schema)
    message = refused(config(f"news.{kind}", {**RIGHT, "text": "headlines"}), schema)
    assert message == (
        f"config: models.news.columns.text = headlines: news.{kind} has no such column; did you "
        'mean "headline"? It has headline, section: set columns.text to one of these'
    )


@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_without_the_label_column_is_named(schema: Path, kind: str) -> None:
    write(f"train.{kind}")
    write(f"dev.{kind}", [row[:1] for row in ROWS], ("headline",))
    message = refused(config(f"*.{kind}", RIGHT), schema)
    assert message == (
        f"config: models.news.columns.label = section: dev.{kind} has no such column; "
        "it has headline: set columns.label to one of these"
    )


@pytest.mark.parametrize("kind", FORMATS)
def test_a_label_with_one_example_is_named(schema: Path, kind: str) -> None:
    write(f"news.{kind}", [*ROWS, ("a comet", "science")])
    message = refused(config(f"news.{kind}", RIGHT), schema)
    assert message == (
        f"config: models.news.data = files:news.{kind}: label 'science' has one example, which "
        "cannot be in all splits; bring more examples of it, or take it out"
    )
    write(f"news.{kind}", [*ROWS, ("a comet", "science"), ("a planet", "science")])
    checked(config(f"news.{kind}", RIGHT), schema)


def test_labels_with_one_example_each_are_counted_over_all_files(schema: Path) -> None:
    write("train.csv", [*ROWS, ("a comet", "science"), ("a song", "art")])
    write("dev.csv", [*ROWS[:6], ("a planet", "science"), ("a vote", "law")])
    message = refused(config("*.csv", RIGHT), schema)
    assert "labels 'art' and 1 more have one example each, which cannot be in all splits" in message


@pytest.mark.parametrize("header", [("headline", "section"), ("headline", "number")])
def test_a_test_file_beside_another_for_evaluation_is_not_used(
    schema: Path, header: tuple[str, str]
) -> None:
    write("train.csv")
    write("test.csv", [("a comet", "science")], header)
    assert "test.csv" in refused(config("*.csv", RIGHT), schema) or header[1] == "section"
    write("dev.csv")
    checked(config("*.csv", RIGHT), schema)


def test_numbers_that_are_equal_are_one_label(schema: Path) -> None:
    Path("news.csv").write_text("headline,section\na,1\nb,01\nc,2\nd,2.0\n")
    checked(config("news.csv", RIGHT), schema)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "news.csv: cannot be read as a table ("),
        ("headline,section\n", "news.csv: has no rows"),
        ("headline,section\na,x\n,y\n", "news.csv: column 'headline' is blank in 1 of 2 rows"),
        ("headline,section\n1,x\n2,y\n", "news.csv: column 'headline' holds numbers only"),
    ],
)
def test_what_the_job_would_refuse_in_a_small_table_is_refused_before_it(
    schema: Path, content: str, said: str
) -> None:
    Path("news.csv").write_text(content)
    message = refused(config("news.csv", RIGHT), schema)
    assert message.startswith(f"config: models.news.data: {said}")


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "jsonl", "parquet"])
def test_of_a_large_table_only_the_columns_are_read(schema: Path, kind: str) -> None:
    words = ["x" * 10 + str(number * 7919 % 100_003) for number in range(200_000)]
    rows = [(f"{word} {word[::-1]}", "sport") for word in words]
    file = write(f"news.{kind}", [*rows, ("a comet", "science")])
    size = file.stat().st_size
    assert size > LARGEST_BYTES / 10
    # the label of the last row has one example, which is refused where the rows are read
    checked(config(f"news.{kind}", RIGHT), schema)
    assert "has no such column" in refused(config(f"news.{kind}", {"text": "body"}), schema)


def test_columns_of_a_table_of_images_are_checked(schema: Path) -> None:
    write("pets.csv", [("a.png", "cat"), ("b.png", "dog")], ("file", "kind"))
    images = {"task": "image-classification", "checkpoint": "scratch:convnext"}
    document = config("pets.csv", {"image": "file", "label": "kind"}, **images)
    document["shapes"] = [{"batch": 1, "height": 8, "width": 8}]
    checked(document, schema)
    document["models"]["news"]["columns"] = {"image": "files", "label": "kind"}
    message = refused(document, schema)
    assert "models.news.columns.image = files: pets.csv has no such column" in message


def test_many_columns_are_counted(schema: Path) -> None:
    header = tuple(f"c{number}" for number in range(30))
    write("news.csv", [tuple(range(30))], header)
    message = refused(config("news.csv", {"text": "body", "label": "c0"}), schema)
    assert "It has" not in message
    assert "; it has c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11 and 18 more: set" in message


def test_a_process_of_a_job_reads_no_table(schema: Path) -> None:
    Path("news.csv").write_text("no,such,column\n")
    document = config("news.csv", RIGHT)
    assert checked(document, schema, look=False)["models"]["news"]["columns"]["text"]
    refused(document, schema)
