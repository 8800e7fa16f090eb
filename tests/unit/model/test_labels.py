"""Names of a model's outputs, from the configuration, against the labels of the data."""

import pytest
from tightrope.errors import TightropeError
from tightrope.model.config import output_order, require_names


def test_each_label_of_the_data_gets_the_output_of_its_name() -> None:
    assert output_order("onnx:m", ["b", "c", "a"], ["a", "b", "c"]) == [2, 0, 1]


@pytest.mark.parametrize(
    ("names", "labels", "reason"),
    [
        (["a", "c"], "ab", "labels lacks 'b' and has 'c', unlike the labels of the data; use the"),
        (["a"], "ab", "labels lacks 'b', unlike"),
        (["a", "b", "c"], "ab", "labels has 'c', unlike"),
        ([], "0123456789", r"labels lacks '0', '1', '2', '3', '4', \.\.\., unlike"),
    ],
)
def test_names_that_are_not_the_labels_of_the_data_are_listed(
    names: list[str], labels: str, reason: str
) -> None:
    with pytest.raises(TightropeError, match=f"^onnx:m: {reason}"):
        output_order("onnx:m", names, list(labels))


def test_a_name_for_each_output_is_needed_each_once() -> None:
    require_names("onnx:m", ["a", "b"], 2)
    with pytest.raises(TightropeError, match="m: has 3 outputs, labels lists 2 names; list one"):
        require_names("onnx:m", ["a", "b"], 3)
    with pytest.raises(TightropeError, match="m: labels: 'a' is listed twice"):
        require_names("onnx:m", ["a", "b", "a"], 3)
