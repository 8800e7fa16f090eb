import json
from pathlib import Path

import pytest
from nvml_driver import build_driver, printed
from tightrope.plan.announce import p99_lines, split_lines, unavailable_lines
from tightrope.plan.plan import Plan

MODEL = {"data": "files:news.csv", "splits": {"evaluation": 120}}
PLAN = Plan(**dict.fromkeys(Plan._fields))


def config(points: float = 1.0, **changes: object) -> dict:
    return {"accuracy_budget_points": points, "models": {"news": {**MODEL, **changes}}}


def test_unavailable_variants_are_named_once_per_reason() -> None:
    unavailable = [("m", "cpu-tvm-fp32", "no compiler"), ("m", "cpu-pytorch-bf16", "no bf16")]
    unavailable += [("n", "cpu-tvm-fp32", "no compiler")]
    assert list(unavailable_lines(PLAN._replace(unavailable=unavailable))) == [
        "unavailable: m/cpu-tvm-fp32, n/cpu-tvm-fp32: no compiler",
        "unavailable: m/cpu-pytorch-bf16: no bf16",
    ]


ANNOUNCED = """
from tightrope.plan.announce import gpu_lines
from tightrope.plan.plan import Plan
from tightrope.variants import parse
plan = Plan(**dict.fromkeys(Plan._fields))
for name in ("cpu-pytorch-fp32", "cuda-pytorch-fp32"):
    print(*gpu_lines(plan._replace(jobs=[("m", parse(name))])))
"""


def test_only_a_plan_for_a_gpu_says_that_an_index_may_choose_another_one(tmp_path: Path) -> None:
    build_driver(tmp_path)
    line = printed(ANNOUNCED, tmp_path, CUDA_VISIBLE_DEVICES="1")
    assert line.startswith("GPU: the GPUs of this machine are not alike")
    assert line.endswith("or CUDA_VISIBLE_DEVICES to a UUID")
    assert printed(ANNOUNCED, tmp_path, CUDA_VISIBLE_DEVICES="GPU-bbbb-2222") == ""


def test_many_unavailable_variants_of_one_reason_are_counted() -> None:
    unavailable = [(f"m{number}", "cpu-tvm-fp32", "no compiler") for number in range(6)]
    (line,) = unavailable_lines(PLAN._replace(unavailable=unavailable))
    assert "m3/cpu-tvm-fp32 and 2 more: no compiler" in line


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_split_that_cannot_show_the_budget_is_announced_with_the_size_that_can() -> None:
    (line,) = split_lines(config())
    assert line == (
        "models.news.splits.evaluation: 120 examples are too few to show that accuracy drops by at "
        "most 1 points, even if no answer changes; 276 could show it"
    )
    assert list(split_lines(config(splits={"evaluation": 276}))) == []
    assert len(list(split_lines(config(splits={"evaluation": 275})))) == 1


def test_a_split_that_is_large_enough_for_a_larger_budget_is_not_announced() -> None:
    assert list(split_lines(config(3.0))) == []


@pytest.mark.parametrize("changes", [{"data": "random"}, {"splits": {"evaluation": None}}])
def test_a_split_of_unknown_size_or_without_labels_is_not_announced(changes: dict) -> None:
    assert list(split_lines(config(**changes))) == []


def test_the_size_of_prepared_data_counts_if_they_are_from_the_same_source() -> None:
    manifest = Path("artifacts/news/splits/evaluation.json")
    manifest.parent.mkdir(parents=True)
    document = {"source": MODEL["data"], "samples": 50}
    manifest.write_text(json.dumps(document))
    (line,) = split_lines(config(splits={"evaluation": None}))
    assert ": 50 examples are too few" in line
    assert list(split_lines(config(splits={"evaluation": 276}))) == []
    manifest.write_text(json.dumps({**document, "source": "files:other.csv"}))
    assert list(split_lines(config(splits={"evaluation": None}))) == []


@pytest.mark.parametrize(
    ("goal", "latency", "said"),
    [
        ({"p99_ms": 5, "traffic": None}, {"calls": None, "min_calls": 6}, True),
        ({"p99_ms": 5, "traffic": None}, {"calls": 100, "min_calls": 800}, True),
        ({"p99_ms": 5, "traffic": None}, {"calls": None, "min_calls": 800}, False),
        ({"p99_ms": 5, "traffic": "server"}, {"calls": None, "min_calls": 6}, False),
        ({"p99_ms": None, "traffic": None}, {"calls": None, "min_calls": 6}, False),
        (None, {"calls": None, "min_calls": 6}, False),
    ],
)
def test_a_bound_of_p99_with_too_few_calls_is_announced_with_the_remedy(
    goal: object, latency: object, said: bool
) -> None:
    lines = list(p99_lines({"goal": goal, "latency": latency}))
    assert [line.startswith("goal.p99_ms: a p99 takes 662 calls") for line in lines] == [
        True
    ] * said
