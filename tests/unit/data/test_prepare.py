import huggingface_hub.constants
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, Value
from tightrope.data.prepare import checked_parts
from tightrope.data.sources.hub import material_of
from tightrope.data.sources.hub import read as read_hub
from tightrope.data.splits import (
    SPLITS,
    TIMING_SAMPLES,
    Material,
    Row,
    fingerprint,
    left_out,
    limited,
    rows_of,
    stratified,
    unique,
)
from tightrope.errors import TightropeError
from tightrope.signature import TEXT

KEYS = {"train": "train", "evaluation": "evaluation", "calibration": "pool"}
POOL = [(f"text number {i}", 0 if i % 4 else 1) for i in range(400)]


def split(
    material: Material, *, limits: dict[str, int | None] | None = None, **asked: int
) -> dict[str, list[Row]]:
    """The rows of each split, as prepare_data and split_data choose them."""
    asked = {"train": None, "evaluation": None, "pool": 40} | asked
    sizes = {name: asked[key] for name, key in KEYS.items()}
    parts = checked_parts(material, sizes, {"source": "files:x", "task": TEXT, "seed": 0})
    parts = limited(parts, limits or {"train": None, "evaluation": None})
    counts = {part: len(rows) for part, rows in parts.items()}
    chosen = {name: rows_of(name, sizes, counts) for name in SPLITS}
    return {name: [parts[part][row] for row in rows] for name, (part, rows) in chosen.items()}


def ones(rows: list) -> int:
    return sum(label for _, label in rows)


def test_a_text_is_taken_once_and_with_two_labels_not_at_all() -> None:
    """Other case, spacing or Unicode form make no other text; punctuation does."""
    rows = [("A  good, film!", 1), ("a good, \uff46ilm!", 1), (" ", 0), ("fine", 1), ("Fine", 0)]
    kept = [("C", 0), ("C++", 1), ("C#", 0), ("bad", 0)]
    assert unique([*rows, ("fine", 1), *kept]) == [("A  good, film!", 1), *kept]
    all_of_it, lost = [*rows, ("fine", 1), *kept], {"train": 7, "evaluation": 1}
    found = left_out(Material([], all_of_it, [("bad", 0), ("BAD", 0)], None, lost))
    reasons = ("rows", "empty", "equal", "contradictory", "in_evaluation")
    expected = {"train": (17, 8, 1, 3, 1), "evaluation": (3, 1, 1, 0, 0)}
    assert {part: tuple(one[r] for r in reasons) for part, one in found.items()} == expected
    assert left_out(Material([], all_of_it, None, None, lost))["pool"]["empty"] == 9


def test_splits_of_one_pool_are_disjoint_and_hold_the_labels_in_proportion() -> None:
    parts = split(Material(["a", "b"], POOL))
    for rows in parts.values():
        for n in range(1, len(rows)):
            assert abs(ones(rows[:n]) - n / 4) <= 1
    del parts["timing"]
    sizes = {name: len(rows) for name, rows in parts.items()}
    assert sizes == {"train": 280, "evaluation": 80, "calibration": 40}
    assert sorted(row for rows in parts.values() for row in rows) == sorted(POOL)
    balanced = stratified(POOL, balanced=True, seed=0)
    assert (len(balanced), ones(balanced)) == (200, 100)


@pytest.mark.parametrize("own", [False, True], ids=["pool", "own evaluation"])
def test_a_split_of_another_size_moves_no_other_example(own: bool) -> None:
    """A larger one begins with the smaller; limits of what is kept change nothing."""
    evaluation = [(f"other {i}", i % 2) for i in range(300)] if own else None
    material = Material(["a", "b"], POOL, evaluation)
    small = split(material, train=100, evaluation=50, pool=8)
    for larger in ({"evaluation": 200}, {"pool": 40}):
        found = split(material, **({"train": 100, "evaluation": 50, "pool": 8} | larger))
        name = "evaluation" if "evaluation" in larger else "calibration"
        assert found[name][: len(small[name])] == small[name]
        assert {**found, name: None} == {**small, name: None}
    limits = {"train": 150, "evaluation": 60}
    few = split(material, train=100, evaluation=50, pool=8, limits=limits)
    # the limits of a plan are larger than the split for timing
    assert few["timing"][:60] == small["timing"][:60]
    assert {**few, "timing": None} == {**small, "timing": None}


def test_timing_takes_the_first_of_the_evaluation_order_whatever_its_size() -> None:
    material = Material(["a", "b"], [(f"text number {i}", i % 2) for i in range(3000)])
    parts = split(material, train=100, evaluation=2000)
    assert parts["timing"] == parts["evaluation"][:TIMING_SAMPLES]
    assert split(material, train=100, evaluation=3)["timing"] == parts["timing"]


def test_nothing_of_the_evaluation_split_is_trained_on_or_calibrated_with() -> None:
    evaluation = [(f" {text.upper()}", label) for text, label in POOL[:100]]
    parts = split(Material(["a", "b"], POOL, evaluation), evaluation=10)
    taken = {fingerprint(text) for text, _ in evaluation}
    rest = parts["train"] + parts["calibration"]
    assert len(rest) == 300
    assert not taken & {fingerprint(text) for text, _ in rest}


def test_too_few_texts_are_an_error_that_names_the_key() -> None:
    for sizes, key in (
        ({"train": 1000}, "splits.train asks for 1000"),
        ({"evaluation": 1000}, "splits.evaluation asks for 1000"),
        ({"pool": 1000}, "calibration.pool asks for 1000"),
        ({"train": 300, "evaluation": 160}, "only 200 distinct texts are left for train, splits"),
    ):
        with pytest.raises(TightropeError, match=key):
            split(Material(["a", "b"], POOL), **sizes)


def rare(count: int) -> Material:
    """Two classes of 200 texts, and `count` texts of a third."""
    rows = [(f"text number {i}", i % 2) for i in range(400)]
    return Material(["a", "b", "rare one"], rows + [(f"rare {i}", 2) for i in range(count)])


def test_a_calibration_split_without_a_class_asks_for_the_pool_that_it_takes() -> None:
    said = r"files:x: no text of class 'rare one' is in the calibration split .*from 10 to 2\d "
    with pytest.raises(TightropeError, match=said) as caught:
        split(rare(2), train=80, evaluation=80, pool=10)
    asked = int(str(caught.value).partition(" from 10 to ")[2].partition(" ")[0])
    parts = split(rare(2), train=80, evaluation=80, pool=asked)
    assert {label for _, label in parts["calibration"]} == {0, 1, 2}
    with pytest.raises(TightropeError, match=f"from {asked - 1} to {asked} "):
        split(rare(2), train=80, evaluation=80, pool=asked - 1)


@pytest.mark.parametrize(
    ("material", "sizes", "said"),
    [
        (rare(1), {"train": 250, "evaluation": 80}, "lower splits.train, or bring more"),
        (rare(1), {"evaluation": 300}, "none is left .*: bring more"),
        (rare(0)._replace(evaluation=[("a", 0), ("b", 2)]), {}, "none is left .*: bring more"),
        # its only text has another label too
        (rare(1)._replace(train=[*rare(1).train, ("rare 0", 0)]), {}, "none is left"),
        (rare(3), {"pool": 2}, r"\(1 of 3 classes .*from 2 to "),
    ],
)
def test_a_class_must_be_calibrated(material: Material, sizes: dict[str, int], said: str) -> None:
    with pytest.raises(TightropeError, match=rf"no text of class 'rare one' .*{said}"):
        split(material, **sizes)


def test_an_unreachable_hub_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # nothing listens on port 9 of this machine
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    words = r"hub:a/b@main: .*could not be reached.*; to use local files"
    with pytest.raises(TightropeError, match=words):
        read_hub("hub:a/b@main", "a/b@main", columns={})


COLUMNS = {"text": "text", "label": "label"}
HUB = "hub:a/b@main"


def hub_table(texts: list, labels: list[int | None], names: list[str] | None) -> Dataset:
    kinds = {"text": Value("string"), "label": ClassLabel(names=names)} if names else None
    return Dataset.from_dict({"text": texts, "label": labels}, kinds and Features(kinds))


def test_a_hub_data_set_keeps_the_names_and_the_order_of_its_labels() -> None:
    """Rows without text or label are left out and counted; a single split is a pool."""
    names = ["bad", "good"]
    texts, labels = [" one ", " ", None, "four", "five", "two"], [0, 1, 1, -1, None, 1]
    tables = {"train": hub_table(texts, labels, names), "validation": hub_table(["a"], [1], names)}
    found = material_of(HUB, DatasetDict(tables | {"test": hub_table(["b"], [-1], names)}), COLUMNS)
    lost = {"train": 4, "evaluation": 0}
    assert found == Material(names, [("one", 0), ("two", 1)], [("a", 1)], left_out=lost)
    pool = material_of(HUB, DatasetDict({"train": hub_table(["a", "b"], [3, 1], None)}), COLUMNS)
    assert pool == Material(["1", "3"], [("a", 1), ("b", 0)], left_out={"train": 0})
    digits = Dataset.from_dict({"text": ["a", "b"], "label": ["10", "9"]})
    assert material_of(HUB, DatasetDict({"train": digits}), COLUMNS).labels == ["9", "10"]


def test_a_column_of_the_hub_that_holds_no_texts_is_an_error() -> None:
    for rows, said in (
        ({"text": [1, 2]}, "column 'text' holds .*, no texts; set"),
        ({"text": [["a"], ["b"]]}, "column 'text' holds .*, no texts; set"),
        ({"body": ["a", "b"]}, "has no column 'text', only body, label"),
    ):
        tables = DatasetDict({"train": Dataset.from_dict({**rows, "label": [0, 1]})})
        with pytest.raises(TightropeError, match=f"{HUB}: {said}"):
            material_of(HUB, tables, COLUMNS)
