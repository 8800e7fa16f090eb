"""Tables that cannot be used are named before anything runs, in one line."""

from pathlib import Path
from typing import Any

import pytest
from configured import configured, refused
from table_files import table_file
from tightrope.plan import model_checks
from tightrope.plan.config_checks import checked

ROWS = [(f"headline {number} of the day", ("sport", "world")[number % 2]) for number in range(40)]
RIGHT = {"text": "headline", "label": "section"}
ONE = ("a comet", "science")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, rows: list = ROWS, header: tuple[str, ...] = ("headline", "section")) -> None:
    table_file(Path(name), rows, [*header])


def of(source: str, columns: dict[str, str] = RIGHT, **model: Any) -> dict[str, Any]:
    keys = {"checkpoint": "scratch:bert", "data": f"files:{source}", "columns": columns, **model}
    return {"models": {"news": keys}}


@pytest.mark.parametrize("kind", ["csv.gz", "tsv", "json", "jsonl", "parquet"])
def test_wrong_columns_and_labels_with_one_example_are_named_in_every_format(kind: str) -> None:
    write(f"news.{kind}")
    configured(**of(f"news.{kind}"))
    assert refused(**of(f"news.{kind}", {**RIGHT, "text": "headlines"})) == (
        f"config: models.news.columns.text = headlines: news.{kind} has no such column; did you "
        'mean "headline"? It has headline, section: set columns.text to one of these'
    )
    write(f"dev.{kind}", [row[:1] for row in ROWS], ("headline",))
    assert refused(**of(f"*.{kind}")) == (
        f"config: models.news.columns.label = section: dev.{kind} has no such column; "
        "it has headline: set columns.label to one of these"
    )
    write(f"news.{kind}", [*ROWS, ONE])
    assert refused(**of(f"news.{kind}")) == (
        f"config: models.news.data = files:news.{kind}: label 'science' has one example, which "
        "cannot be in all splits; bring more examples of it, or take it out"
    )
    # which is looked for in all files
    write(f"dev.{kind}", [*ROWS, ("a planet", "science")])
    configured(**of(f"*.{kind}"))


@pytest.mark.parametrize("header", [("headline", "section"), ("headline", "number")])
def test_a_test_file_beside_another_for_evaluation_is_not_used(header: tuple[str, str]) -> None:
    write("train.csv")
    write("test.csv", [ONE], header)
    assert "test.csv" in refused(**of("*.csv")) or header[1] == "section"
    write("dev.csv")
    configured(**of("*.csv"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "cannot be read as a table ("),
        ("headline,section\n", "has no rows"),
        ("headline,section\na,x\n,y\n", "column 'headline' is blank in 1 of 2 rows"),
        ("headline,section\n1,x\n2,y\n", "column 'headline' holds numbers only"),
        # numbers that are equal are one label
        ("headline,section\na,1\nb,01\nc,2\nd,2.0\n", None),
    ],
)
def test_what_the_job_would_refuse_in_a_small_table_is_refused_before_it(content, said) -> None:
    Path("news.csv").write_text(content)
    if said is None:
        configured(**of("news.csv"))
    else:
        assert refused(**of("news.csv")).startswith(f"config: models.news.data: news.csv: {said}")


@pytest.mark.parametrize("kind", ["csv.gz", "jsonl", "parquet"])
def test_of_a_large_table_only_the_columns_are_read(monkeypatch, kind) -> None:
    monkeypatch.setattr(model_checks, "LARGEST_BYTES", 400)
    # the label of the last row has one example, which is refused where the rows are read
    write(f"news.{kind}", [*ROWS, ONE])
    configured(**of(f"news.{kind}"))
    assert "has no such column" in refused(**of(f"news.{kind}", {"text": "body"}))


def test_columns_of_images_are_checked_and_many_counted() -> None:
    write("pets.csv", [("a.png", "cat"), ("b.png", "dog")], ("file", "kind"))
    images = {"task": "image-classification", "checkpoint": "scratch:convnext"}
    shapes = [{"batch": 1, "height": 8, "width": 8}]
    configured(**of("pets.csv", {"image": "file", "label": "kind"}, **images), shapes=shapes)
    wrong = of("pets.csv", {"image": "files", "label": "kind"}, **images)
    said = "models.news.columns.image = files: pets.csv has no such column"
    assert said in refused(**wrong, shapes=shapes)
    write("news.csv", [tuple(range(30))], tuple(f"c{number}" for number in range(30)))
    message = refused(**of("news.csv", {"text": "body", "label": "c0"}))
    assert "It has" not in message
    assert "; it has c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11 and 18 more: set" in message
    found = checked(of("news.csv"), look=False)
    assert found["models"]["news"]["columns"]["text"] == "headline"
