"""Names of a model's outputs, from the configuration, against the labels of the data."""

import pytest
from tightrope.errors import TightropeError
from tightrope.model.labels import output_order, require_names


def test_each_label_of_the_data_gets_the_output_of_its_name() -> None:
    assert output_order("onnx:m", ["b", "c", "a"], ["a", "b", "c"]) == [2, 0, 1]


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["a", "c"], "m: labels lacks 'b' and has 'c', unlike the labels of the data; use the"),
        (["A", "b"], "labels lacks 'a' and has 'A'"),
        (["a"], "labels lacks 'b', unlike"),
        (["a", "b", "c"], "labels has 'c', unlike"),
    ],
)
def test_names_that_are_not_the_labels_of_the_data_are_listed(
    names: list[str], reason: str
) -> None:
    with pytest.raises(TightropeError) as caught:
        output_order("onnx:m", names, ["a", "b"])
    assert reason in str(caught.value)


def test_of_many_missing_labels_five_are_listed() -> None:
    with pytest.raises(TightropeError, match=r"lacks '0', '1', '2', '3', '4', \.\.\., unlike"):
        output_order("onnx:m", [], [str(number) for number in range(1000)])


def test_a_name_for_each_output_is_needed_each_once() -> None:
    require_names("onnx:m", ["a", "b"], 2)
    with pytest.raises(TightropeError, match="m: has 3 outputs, labels lists 2 names; list one"):
        require_names("onnx:m", ["a", "b"], 3)
    with pytest.raises(TightropeError, match="m: labels: 'a' is listed twice"):
        require_names("onnx:m", ["a", "b", "a"], 3)
