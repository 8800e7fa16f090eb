import pytest
from accuracy_records import accuracy_record
from raced import HOST
from tightrope.records.accuracy import AccuracyRecord
from tightrope.summary.accuracy import Split, flipped

NAMES = ["bad", "good", "mixed"]


def record(predictions: list[int], margins: list[float], labels: list[int]) -> AccuracyRecord:
    identity = {"model": "m", "variant": "cpu-onnxruntime-fp32", "host": HOST, "libraries": {}}
    answers = {"labels": labels, "predictions": predictions, "margins": margins}
    return accuracy_record(**identity, **answers, data_sha256="d")


LABELS = [0, 1, 2, 1]
OURS = record([0, 2, 1, 0], [4.0, 0.5, 0.25, 1.5], LABELS)
THEIRS = record([0, 1, 2, 2], [3.0, 0.125, 2.5, 0.125], LABELS)
TEXTS = ["fine", "not bad", "so so", "well"]


def test_the_one_of_which_the_baseline_was_surest_comes_first_and_the_first_of_equals() -> None:
    found = flipped(OURS, THEIRS, Split("d", TEXTS, NAMES))
    assert [tuple(one.values()) for one in found] == [
        (2, "so so", "mixed", "mixed", "good", 2.5, 0.25),
        (1, "not bad", "good", "good", "mixed", 0.125, 0.5),
        (3, "well", "good", "mixed", "bad", 0.125, 1.5),
    ]
    assert list(found[0])[3:] == ["baseline", "prediction", "baseline_margin", "margin"]


@pytest.mark.parametrize("ours", [1, 3])
def test_only_examples_that_both_judged_can_flip(ours: int) -> None:
    first = record(OURS.predictions[:ours], OURS.margins[:ours], LABELS[:ours])
    every = Split("d", TEXTS, NAMES)
    assert [one["index"] for one in flipped(first, THEIRS, every)] == [2, 1][: ours - 1]
    assert [one["index"] for one in flipped(THEIRS, first, every)] == [1, 2][: ours - 1]


def test_the_two_hundred_worst_are_listed() -> None:
    labels, margins = [0] * 500, [float(index) for index in range(500)]
    ours, theirs = record([1] * 500, margins, labels), record([0] * 500, margins, labels)
    found = flipped(ours, theirs, Split("d", ["text"] * 500, NAMES))
    assert [one["index"] for one in found] == list(range(499, 299, -1))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x" * 300, "x" * 300),
        ("x" * 301, "x" * 299 + "\N{HORIZONTAL ELLIPSIS}"),
        ("x" * 295 + " " * 10 + "x" * 400, "x" * 295 + "\N{HORIZONTAL ELLIPSIS}"),
        (None, None),
    ],
    ids=["whole", "cut", "cut-in-a-gap", "none"],
)
def test_a_text_is_cut_at_three_hundred_characters(text: str | None, told: str | None) -> None:
    found = flipped(record([1], [1.0], [0]), record([0], [1.0], [0]), Split("d", [text], NAMES))
    assert [one["text"] for one in found] == [told]


def test_texts_of_another_split_than_the_one_judged_are_not_told() -> None:
    found = flipped(OURS, THEIRS, Split("another", ["other text"], NAMES))
    assert [one["text"] for one in found] == [None] * 3
    assert [one["index"] for one in found] == [2, 1, 3]


@pytest.mark.parametrize(("names", "told"), [(None, [2, 1]), (["bad", "good"], [2, "good"])])
def test_a_class_without_a_name_is_told_by_its_number(names: list[str] | None, told: list) -> None:
    first = flipped(OURS, THEIRS, Split("d", TEXTS, names))[0]
    assert [first["baseline"], first["prediction"]] == told
