"""Planning many variants: its time grows with their number, and files are named when asked for."""

import inspect
import time
from types import SimpleNamespace
from typing import Any

import pytest
from tightrope.plan.families import children_of, compared, families, of_variants
from tightrope.plan.job_inputs import graph_columns
from tightrope.plan.plan import Plan, raced, records
from tightrope.plan.wildcards import by_place, columns, of_model, of_wildcards, paths, product
from tightrope.variants import Variant, parse

REPAIRS = 20
FEW, TIMES = 40, 8


def many(models: int) -> tuple[dict[str, Any], list[tuple[str, Variant]]]:
    """The configuration of so many models, every fourth a root, and REPAIRS jobs of each."""
    parents = {f"m{one}": None if one % 4 == 0 else f"m{one - one % 4}" for one in range(models)}
    config = {
        "models": {
            name: {"from": parent, "activation": name, "seed": 1}
            for name, parent in parents.items()
        },
        "graphs": ["simplified", "quantized"],
        "calibration": {"reduce_range": False},
    }
    variants = [parse(f"cpu-onnxruntime-int8-minmax-16-r{one}") for one in range(REPAIRS)]
    return config, [(name, variant) for name in parents for variant in variants]


def planned(jobs: list[tuple[str, Variant]]) -> Plan:
    """A plan in which everything is measured of each job."""
    kinds = ("traffic", "throughput", "profile", "idleness", "causes", "activations")
    fields = dict.fromkeys(Plan._fields) | dict.fromkeys(kinds, jobs)
    empty = {"training": [], "families": {}}
    return Plan(**{**fields, **empty, "jobs": jobs, "variants": by_place(jobs)})


def race_all(config: dict[str, Any], jobs: list[tuple[str, Variant]]) -> None:
    plan = planned(jobs)
    for model, device in plan.variants:
        raced(plan, "{model}/{variant}", SimpleNamespace(model=model, device=device))


def time_families(config: dict[str, Any], jobs: list[tuple[str, Variant]]) -> None:
    variants, children = by_place(jobs), children_of(config)
    for root, device in families(config, jobs):
        of_variants(children, variants, "{variant}", SimpleNamespace(model=root, device=device))


@pytest.mark.parametrize(
    "step",
    [
        lambda config, jobs: compared(config, jobs),
        lambda config, jobs: records(planned(jobs)),
        lambda config, jobs: graph_columns(config, jobs),
        lambda config, jobs: families(config, jobs),
        time_families,
        race_all,
    ],
    ids=["compared", "records", "graphs", "families", "families-inputs", "races"],
)
def test_eight_times_the_jobs_take_less_than_a_third_of_their_square(step: Any) -> None:
    """64 times the time would be the square."""
    few, more = (many(models) for models in (FEW, TIMES * FEW))
    assert seconds(step, *more) < TIMES**2 / 3 * seconds(step, *few)


def seconds(step: Any, config: dict[str, Any], jobs: list[tuple[str, Variant]]) -> float:
    """CPU seconds of a step, the least of three."""
    found = []
    for _ in range(3):
        before = time.process_time()
        step(config, jobs)
        found.append(time.process_time() - before)
    return min(found)


def test_a_bound_function_says_its_signature_without_looking_at_it_again() -> None:
    bound = of_wildcards(of_model, {"models": {"m": {"seed": 3}}}, "seed")
    assert bound(SimpleNamespace(model="m")) == 3
    assert list(inspect.signature(bound).parameters) == ["wildcards"]
    assert inspect.signature(bound) is inspect.signature(bound)


def test_paths_are_those_of_the_rows_in_their_order() -> None:
    jobs = [("m", parse("cpu-pytorch-fp32")), ("n", parse("cpu-openvino-bf16"))]
    assert paths("{model}/{variant}.json", columns(jobs), None) == [
        "m/cpu-pytorch-fp32.json",
        "n/cpu-openvino-bf16.json",
    ]
    assert paths("{model}/{variant}.json", columns([]), None) == []
    assert paths("{model}/{split}", product(["m", "n"], ["a", "b"]), None) == [
        "m/a",
        "m/b",
        "n/a",
        "n/b",
    ]
