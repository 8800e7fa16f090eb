"""What is made again after a change of the configuration or of the user's files, and nothing else.

A row is a change and the jobs that it makes stale, as Snakemake names their logs; `fingerprints`
tells them without running any. A few dry runs show that Snakemake plans the same.
"""

from collections.abc import Callable
from copy import deepcopy
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from fingerprints import fingerprints
from tiny_project import CONFIG, MODEL, Project

OPENVINO, INT8 = "cpu-openvino-fp32", "cpu-onnxruntime-int8-minmax-8"
BASE: dict[str, Any] = {
    **deepcopy(CONFIG),
    "traffic": {"variants": [OPENVINO], "batch": 4, "buckets": 2, "seconds": 0.2},
    "throughput": {"variants": [OPENVINO], "batches": [1, 4], "sequence": 8, "seconds": 0.2},
    "idleness": {"variants": [OPENVINO], "pauses": [0.01, 0.05]},
    "profile": {"variants": [OPENVINO]},
    "training": {"epochs": 2, "seeds": [0, 1]},
}
TINY: dict[str, Any] = BASE["models"][MODEL]
RECIPE = {**TINY["train"], "epochs": 1}
CHILD = {"from": MODEL, "prune": {"layers": 1}, "train": RECIPE}
QAT = {"scheme": "u8s8", "epochs": 1, "batch": 16, "sequence": 16, "device": "cpu"}
REPORT = {"summarize/*", "render_report/*"}
RACE = {"race_finalists/*"} | REPORT
TIMES = {"measure_latency/*", "measure_traffic/*", "measure_throughput/*", "measure_idleness/*"}
ENGINES = {"build_*", "measure_accuracy/*", "measure_profile/*"} | TIMES | RACE
ON_HOST = {"measure_training/*", "measure_peaks/*", "measure_requests/*"}
FROM_ONNX = {
    *("calibrate/*", "quantize_onnx/*", "simplify_onnx/*", "measure_requests/*"),
    "describe_graph/*",
}
FROM_CHECKPOINT = {"export_onnx/*"} | FROM_ONNX | ENGINES
TRAINED = {"train_model/*"} | FROM_CHECKPOINT


def one_model(**changes: Any) -> dict[str, Any]:
    return {"models": {MODEL: {**TINY, **changes}}}


def with_child(**changes: Any) -> dict[str, Any]:
    return {"models": {MODEL: TINY, "child": {**CHILD, **changes}}}


def chain(*calibrations: str) -> set[str]:
    """All that is made with these, up to the report."""
    return {f"*{one}" for one in calibrations} | RACE


def within(section: str, **changes: Any) -> dict[str, Any]:
    return {section: {**BASE[section], **changes}}


def of_variants(*names: str) -> set[str]:
    """Builds and measurements of variants."""
    builds = {f"build_{e}/*-{d}-{rest}" for d, e, rest in (one.split("-", 2) for one in names)}
    return builds | {f"*-{name}" for name in names} | RACE


AUTO = within("engines", onnxruntime=["int8", "int8-auto"]) | {"accuracy_budget_points": 20.0}
OPENVINOS = ("cpu-openvino-fp32", "cpu-openvino-bf16", "cpu-openvino-int8-nncf-8")
NOTHING: set[str] = set()
OF_CHILD = {f"{rule}/child" for rule in ("train_model", "export_onnx", "simplify_onnx")} | REPORT
OF_CHILD |= {f"{rule}/child-*" for rule in ("calibrate", "quantize_onnx", "build_*")}
OF_CHILD |= {"describe_graph/child-*", "race_finalists/child-*", "race_family/*"}
SMOOTH = {"repairs": {"smooth": {"smoothquant": 0.5}}}
PERCENTILE = within("calibration", methods=["nncf", "percentile"])
# what is changed, and the jobs that this makes stale
Row = tuple[dict[str, Any], set[str]]
Planned = Callable[[dict[str, Any]], dict[str, str]]
ROWS: dict[str, Row] = {
    # what decides nothing of a file
    "strict": ({"strict": True}, NOTHING),
    "retry_failed": ({"retry_failed": True}, NOTHING),
    "remeasure": ({"remeasure": "disturbed"}, NOTHING),
    "latency.quiet_seconds": (within("latency", quiet_seconds=5), NOTHING),
    "a repair that needs a GPU": ({"repairs": {"whole": {"attention": True}}}, NOTHING),
    # calibration
    "calibration.samples": (within("calibration", samples=[16]), chain("minmax-16", "nncf-16")),
    "one more calibration.methods": (
        within("calibration", methods=["minmax", "nncf", "entropy"]),
        chain("entropy-8"),
    ),
    "calibration.percentile": (
        within("calibration", methods=["nncf", "percentile"], percentile=99),
        chain("percentile-8"),
    ),
    "calibration.percentile without that method": (within("calibration", percentile=99), NOTHING),
    "calibration.pool": (
        within("calibration", pool=48),
        {"split_data/*-calibration"} | chain("minmax-8", "nncf-8"),
    ),
    "calibration.reduce_range": (
        within("calibration", reduce_range=True),
        chain("u8s7-minmax-8") | of_variants(INT8, OPENVINOS[2]),
    ),
    "one more of repairs": (SMOOTH, chain("minmax-8-smooth")),
    "a repair": ({"repairs": {"smooth": {"smoothquant": 0.6}}}, chain("minmax-8-smooth")),
    # engines
    "one more precision": (
        within("engines", pytorch=["fp32", "bf16"]),
        of_variants("cpu-pytorch-bf16"),
    ),
    "one more engine": (
        within("engines", torchscript=["fp32"]),
        of_variants("cpu-torchscript-fp32"),
    ),
    "a variant less": (within("engines", openvino=["fp32", "int8"]), RACE),
    "onnxruntime.spinning": ({"onnxruntime": {"spinning": False}}, of_variants(INT8)),
    "openvino.route": ({"openvino": {"route": "pytorch"}}, of_variants(*OPENVINOS)),
    "buckets": ({"buckets": {"batch": [1, 2, 4], "sequence": [8, 16]}}, of_variants(*OPENVINOS)),
    "threads": ({"threads": 1}, TRAINED | {"measure_training/*", "measure_peaks/*"}),
    "host": ({"host": "other"}, ENGINES | ON_HOST),
    # measurements
    "shapes": (
        {"shapes": [{"batch": 3, "sequence": 8}]},
        {"measure_latency/*", "measure_profile/*", "measure_requests/*", "measure_idleness/*"}
        | RACE,
    ),
    "a padded shape less": ({"shapes": CONFIG["shapes"][:2]}, {"measure_latency/*"} | RACE),
    "latency.calls": (within("latency", calls=5), {"measure_latency/*"} | RACE),
    "latency.accept_disturbed": (within("latency", accept_disturbed=False), RACE),
    "decision.seconds": ({"decision": {"seconds": 2}}, RACE),
    "accuracy_budget_points": ({"accuracy_budget_points": 2.0}, RACE),
    "accuracy_budget_points with int8-auto": (
        {"accuracy_budget_points": 30.0},
        {"search_operators/*", "*-auto", "*-int8-auto-*"} | RACE,
    ),
    "one more calibration.methods with int8-auto": (
        within("calibration", methods=["minmax", "nncf", "entropy"]),
        chain("entropy-8") | {"*entropy-8-auto"},
    ),
    "host with int8-auto": (
        {"host": "other"},
        ENGINES | ON_HOST | {"measure_costs/*", "describe_graph/*"},
    ),
    "accuracy_seconds": ({"accuracy_seconds": 800}, {"measure_accuracy/*"} | RACE),
    "goal": ({"goal": {"minimize": "memory"}}, RACE),
    "prices": ({"prices": {"*": 1.0}}, REPORT),
    "traffic.batch": (within("traffic", batch=2), {"measure_traffic/*"} | REPORT),
    "no traffic": ({"traffic": {}}, REPORT),
    "throughput.batches": (within("throughput", batches=[2]), {"measure_throughput/*"} | REPORT),
    "idleness.pauses": (within("idleness", pauses=[0.02]), {"measure_idleness/*"} | REPORT),
    "idleness.shape": (
        within("idleness", shape={"batch": 2, "sequence": 8}),
        {"measure_idleness/*"} | REPORT,
    ),
    "explain": ({"explain": "verify"}, {"verify_causes/*"} | REPORT),
    "training.epochs": (within("training", epochs=3), {"measure_training/*"} | REPORT),
    # models
    "models.seed": (one_model(seed=1), {"[!m]*", "measure_[!p]*", "measure_profile/*"}),
    "models.max_sequence": (
        one_model(max_sequence=12),
        {"measure_accuracy/*", "measure_profile/*", "measure_requests/*", "describe_graph/*-u8s8-*"}
        | (chain("minmax-8", "nncf-8") | TIMES),
    ),
    "models.splits.evaluation": (
        one_model(splits={"train": 120, "evaluation": 60}),
        {"split_data/*-evaluation", "measure_accuracy/*"} | RACE,
    ),
    "models.splits.evaluation where train takes what is left": (
        one_model(splits={"train": None, "evaluation": 60}),
        {"split_data/*-evaluation", "split_data/*-train", "measure_accuracy/*"}
        | {"measure_training/*", *TRAINED},
    ),
    "models.splits.train": (
        one_model(splits={"train": 100, "evaluation": 40}),
        {"split_data/*-train", "split_data/*-calibration", "measure_training/*", *TRAINED},
    ),
    "models.train.epochs": (one_model(train=RECIPE), TRAINED),
    "models.activation": (one_model(activation="fast_swish"), {"measure_training/*", *TRAINED}),
    "another checkpoint": (
        one_model(checkpoint=TINY["checkpoint"] + "&hidden_act=relu"),
        {"prepare_checkpoint/*", "measure_training/*", *TRAINED},
    ),
    # models that start from another
    "a child": (with_child(), {"*/child*", "race_family/*"} | REPORT),
    "prune of a child": (
        with_child(prune={"layers": 1, "intermediate": 32}),
        OF_CHILD | {"measure_*/child*"},
    ),
    "the recipe of a parent": (
        {"models": {MODEL: {**TINY, "train": RECIPE}, "child": CHILD}},
        TRAINED | {"prepare_checkpoint/child", "measure_training/child", "race_family/*"},
    ),
    "a teacher": (
        with_child(distill={"from": MODEL}),
        OF_CHILD | {"run_teacher/*", "measure_*/child*"},
    ),
    "qat of a child": (
        with_child(train=None, qat={**QAT, "epochs": 2}),
        OF_CHILD | {"measure_*/child-*"},
    ),
    "a target of pruning": (
        with_child(prune={"target": "3x"}),
        OF_CHILD | {"choose_structure/*", "measure_*/child-cpu*", "measure_*/child"},
    ),
}
for name in ("traffic", "throughput", "profile"):
    more = within(name, variants=[*BASE[name]["variants"], INT8])
    ROWS[f"one more of {name}.variants"] = (more, {f"measure_{name}/*-{INT8}"} | REPORT)
# the configuration that is changed, where it is not BASE alone
BEFORE: dict[str, dict[str, Any]] = {
    "calibration.percentile": PERCENTILE,
    "models.splits.evaluation where train takes what is left": one_model(
        splits={"train": None, "evaluation": 40}
    ),
    "a repair": SMOOTH,
    "accuracy_budget_points with int8-auto": AUTO,
    "one more calibration.methods with int8-auto": AUTO,
    "host with int8-auto": AUTO,
    "prune of a child": with_child(),
    "the recipe of a parent": with_child(),
    "a teacher": with_child(),
    "qat of a child": with_child(train=None, qat=QAT),
    "a target of pruning": with_child(prune={"target": "2x"}),
}


@pytest.fixture(scope="module")
def planned(fresh: Project, tmp_path_factory: pytest.TempPathFactory) -> Planned:
    """From what a configuration has in place of BASE to the fingerprints of its jobs."""
    project = fresh.copy(tmp_path_factory.mktemp("staleness") / "project")
    known: dict[str, dict[str, str]] = {}

    def planned(config: dict[str, Any]) -> dict[str, str]:
        if repr(config) not in known:
            project.configure(**{**BASE, **config})
            known[repr(config)] = fingerprints(project.folder)
        return known[repr(config)]

    return planned


def stale(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {job for job, digest in after.items() if before.get(job) != digest}


@pytest.mark.parametrize("row", ROWS)
def test_a_change_makes_stale_what_depends_on_it_alone(planned: Planned, row: str) -> None:
    before, (change, patterns) = BEFORE.get(row, {}), ROWS[row]
    first = planned(before)
    second = planned({**before, **change})
    found = stale(first, second)
    expected = {job for job in second if any(fnmatchcase(job, one) for one in patterns)}
    assert found == expected
    unused = [one for one in patterns if not any(fnmatchcase(job, one) for job in second)]
    assert not unused


@pytest.mark.parametrize("row", ["latency.calls", "calibration.samples", "accuracy_seconds"])
def test_snakemake_plans_the_same(finished: Project, tmp_path: Path, row: str) -> None:
    """A dry run in a folder with results: of the tiny configuration, without studies."""
    project = finished.copy(tmp_path / "project")
    before = fingerprints(project.folder)
    project.configure(**ROWS[row][0])
    assert project.plan() == stale(before, fingerprints(project.folder)) != set()
