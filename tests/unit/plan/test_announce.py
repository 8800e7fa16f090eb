"""What is said before a run: what cannot run, small splits, few calls, and needless rebuilds."""

from pathlib import Path

import pytest
from manifests import ENGINE, SPLIT
from nvml_driver import printed_each
from tightrope.artifacts.manifest import write_manifest
from tightrope.plan.announce import bucket_lines, p99_lines, split_lines, unavailable_lines
from tightrope.plan.plan import Plan
from tightrope.variants import parse

SOURCE = "files:news.csv"
OPENVINO, PYTORCH = parse("cpu-openvino-fp32"), parse("cpu-pytorch-fp32")
PLAN = Plan(**{**dict.fromkeys(Plan._fields), "jobs": [("m", PYTORCH), ("m", OPENVINO)]})


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_unavailable_variants_are_named_once_per_reason_and_many_are_counted() -> None:
    unavailable = [(f"m{number}", "cpu-tvm-fp32", "no compiler") for number in range(6)]
    unavailable.insert(1, ("m", "cpu-pytorch-bf16", "no bf16"))
    assert list(unavailable_lines(PLAN._replace(unavailable=unavailable))) == [
        "unavailable: m0/cpu-tvm-fp32, m1/cpu-tvm-fp32, m2/cpu-tvm-fp32, m3/cpu-tvm-fp32 and 2 "
        "more: no compiler",
        "unavailable: m/cpu-pytorch-bf16: no bf16",
    ]


ANNOUNCED = """
from tightrope.plan.announce import gpu_lines
from tightrope.plan.plan import Plan
from tightrope.variants import parse
plan = Plan(**dict.fromkeys(Plan._fields))
for name in ("cpu-pytorch-fp32", "cuda-pytorch-fp32"):
    print(name, *gpu_lines(plan._replace(jobs=[("m", parse(name))])))
"""


def test_only_a_plan_for_a_gpu_says_that_it_may_be_another_one_or_a_part(driver: Path) -> None:
    cases = [{"CUDA_VISIBLE_DEVICES": one} for one in ("1", "GPU-bbbb-2222", "MIG-cccc-3333")]
    line, none, part = printed_each(ANNOUNCED, driver, cases)
    first = "cpu-pytorch-fp32\ncuda-pytorch-fp32 GPU: the GPUs of this machine are not alike"
    assert line.startswith(first)
    assert line.endswith("or CUDA_VISIBLE_DEVICES to a UUID")
    assert none == "cpu-pytorch-fp32\ncuda-pytorch-fp32"
    assert part.startswith(f"{none} GPU: NVIDIA H100 80GB HBM3 MIG 1g.10gb is a part of one: ")


@pytest.mark.parametrize(
    ("points", "evaluation", "data", "few"),
    [
        (1.0, 120, SOURCE, 120),
        (1.0, 275, SOURCE, 275),
        (1.0, 276, SOURCE, None),
        (3.0, 120, SOURCE, None),
        (1.0, 120, "random", None),
        # the size of prepared data counts if they are from the same source
        (1.0, None, SOURCE, 50),
        (1.0, None, "files:other.csv", None),
    ],
)
def test_a_split_that_cannot_show_the_budget_is_announced(points, evaluation, data, few) -> None:
    model = {"data": data, "splits": {"evaluation": evaluation}}
    config = {"accuracy_budget_points": points, "models": {"news": model}}
    if evaluation is None:
        assert list(split_lines(config)) == []
        split = {**SPLIT, "source": SOURCE, "samples": 50}
        write_manifest("artifacts/news/splits/evaluation.json", **split)
    expected = (
        f"models.news.splits.evaluation: {few} examples are too few to show that accuracy drops by "
        "at most 1 points, even if no answer changes; 276 could show it"
    )
    assert list(split_lines(config)) == [expected] * (few is not None)


def test_a_bound_of_p99_with_too_few_fixed_calls_is_announced_with_the_remedy() -> None:
    for goal, calls, said in (
        ({"p99_ms": 5, "traffic": None}, 100, True),
        ({"p99_ms": 5, "traffic": None}, 800, False),
        # measured until there are enough
        ({"p99_ms": 5, "traffic": None}, None, False),
        ({"p99_ms": 5, "traffic": "server"}, 100, False),
        ({"p99_ms": None, "traffic": None}, 100, False),
        (None, 100, False),
    ):
        lines = list(p99_lines({"goal": goal, "latency": {"calls": calls}}))
        assert len(lines) == said
        assert all(one.startswith("goal.p99_ms: a p99 takes 662 calls") for one in lines)


BUILT = {"batch": [1, 8], "sequence": [32, 64, 128]}


@pytest.mark.parametrize(
    ("batch", "buckets", "told"),
    [(4, "auto", True), (8, "auto", False), (16, "auto", False), (4, BUILT, False)],
    ids=str,
)
def test_the_key_that_keeps_engines_that_hold_the_shapes_is_announced(batch, buckets, told) -> None:
    model = {"task": "text-classification", "max_sequence": 128}
    shapes = [{"batch": batch, "sequence": 64}]
    config = {"buckets": buckets, "shapes": shapes, "models": {"m": model}}
    assert list(bucket_lines(config, PLAN)) == []  # there is no engine yet
    engine = {**ENGINE, "options": {"buckets": BUILT}}
    write_manifest(f"artifacts/m/engines/{OPENVINO}/engine.json", **engine)
    line = (
        "rebuilt: engines of m with buckets: auto, which follows shapes; buckets: {batch: [1, 8], "
        "sequence: [32, 64, 128]} holds these shapes as well and keeps the engines"
    )
    assert list(bucket_lines(config, PLAN)) == [line] * told
