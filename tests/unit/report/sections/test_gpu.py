"""What the report says of the GPU: steadiness in words, and memory by variant."""

from typing import Any

import pytest
from gpu_states import GPU
from results import result, row
from tightrope.decide.result import Gpu, Result
from tightrope.report.sections.steadiness import gpu_memory, gpu_steadiness, streams_section


def results(*states: dict[str, Any] | None) -> list[Result]:
    """A result with a row for each, which None leaves without a GPU."""
    rows = [row(1.0, gpu=one if one is None else Gpu(**{**GPU, **one})) for one in states]
    return [result("cuda-pytorch-fp32", *rows, host="h")]


def test_without_a_gpu_nothing_is_said() -> None:
    without = [*results(None), *results()]
    assert gpu_steadiness(without) == []
    assert streams_section(without) is None
    # a driver that reports nothing
    assert gpu_steadiness(results(dict.fromkeys(GPU)))[:2] == [
        ("GPU clocks, locked or not", "The driver reports neither clocks nor temperature."),
        ("GPU throttling not known", "Known in 0 of 1 rows."),
    ]


def test_clocks_that_changed_are_not_locked_and_the_remedy_is_named() -> None:
    (title, sentence), (throttling, _) = gpu_steadiness(results({}, {"sm_clock_mhz": 1410}))
    assert title == "GPU clocks not locked"
    assert sentence == (
        "SM clock 1,410 to 1,980 MHz; beside it the baseline's 1,830 MHz; "
        "memory clock 2,619 MHz; highest temperature 61 °C. "
        "Locked clocks repeat better: nvidia-smi --lock-gpu-clocks."
    )
    assert throttling == "GPU not throttled"
    for other, words in ((True, "held by a setting"), (None, ", locked or not"), (False, "not ")):
        found = gpu_steadiness(results({"clocks_locked": True}, {"clocks_locked": other}))
        assert found[0][0].removeprefix("GPU clocks").strip(" ").startswith(words.strip(" "))


@pytest.mark.parametrize(
    ("reasons", "words"),
    [
        (["power cap"], "No pair of blocks is left out for it"),
        (["power cap", "thermal slowdown"], "are disturbed and left out"),
    ],
)
def test_throttling_is_counted_by_reason_with_what_it_means(reasons: Any, words: str) -> None:
    title, sentence = gpu_steadiness(results({"throttled": reasons}, {}))[1]
    assert title == "GPU throttled: " + ", ".join(f"{one} (1 of 2 rows)" for one in reasons)
    assert words in sentence


def test_other_processes_are_told_where_there_were_some() -> None:
    ((title, sentence),) = gpu_steadiness(results({"other_processes": 2}, {}))[2:]
    assert title == "Other processes on the GPU"
    assert sentence.startswith("Up to 2 at a time.")
    # a container hides whether there were any
    unknown = {"other_processes": None}
    ((title, sentence),) = gpu_steadiness(results(unknown, unknown))[2:]
    assert title == "Other processes on the GPU not known"
    assert sentence.endswith("whether the GPU was shared.")
    assert len(gpu_steadiness(results(unknown, {}))) == 2


def test_memory_is_the_most_of_any_shape_where_it_is_known() -> None:
    rows = results({"memory_bytes": 2}, {"memory_bytes": 5}, {"memory_bytes": None}, None)
    assert gpu_memory(rows) == {("h", "cuda-pytorch-fp32"): 5}
    assert gpu_memory(results({"memory_bytes": None}, None)) == {}
