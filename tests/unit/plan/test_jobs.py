"""What wildcards match, functions of them, and how the time to plan grows with the variants."""

import re
import time
import timeit
from typing import Any

import pytest
from tightrope.plan.families import compared, families
from tightrope.plan.job_inputs import graphs_of, paths
from tightrope.plan.jobs import Table
from tightrope.plan.location import Location
from tightrope.plan.plan import Plan, by_place, one_of, raced, records
from tightrope.studies.table import STUDIES
from tightrope.variants import Variant, parse


def test_patterns_have_beginnings_once_and_settings_are_of_the_model() -> None:
    assert re.match(one_of(["int8", "int8-auto"]), "int8-auto-minmax-8").group() == "int8-auto"
    names = [f"cpu-int8-{count}-r{number}" for count in (16, 32) for number in "01"]
    assert one_of(names) == r"cpu\-int8\-(?:16\-r(?:0|1)|32\-r(?:0|1))"
    assert one_of([]) == ""
    setting = Table({"models": {"m": {"seed": 3}}}, None, Location("."), None).setting("seed")
    assert setting({"model": "m"}) == 3
    jobs = [("m", parse("cpu-pytorch-fp32")), ("n", parse("cpu-openvino-bf16"))]
    found = ["m/cpu-pytorch-fp32.json", "n/cpu-openvino-bf16.json"]
    assert paths("{model}/{variant}.json", jobs) == found
    assert paths("{model}/{device}.json", by_place(jobs)) == ["m/cpu.json", "n/cpu.json"]
    assert paths("{model}.json", ["m", "n"]) == ["m.json", "n.json"]
    assert paths("{model}/{variant}.json", []) == []


REPAIRS = 20
FEW, TIMES = 40, 8


def many(models: int) -> tuple[dict[str, Any], Plan]:
    """The configuration of so many models, every fourth a root, and all of REPAIRS jobs of each."""
    parents = {f"m{one}": None if one % 4 == 0 else f"m{one - one % 4}" for one in range(models)}
    own = {one: {"from": of, "activation": one, "seed": 1} for one, of in parents.items()}
    others = {"graphs": ["simplified", "quantized"], "calibration": {"reduce_range": False}}
    config = {"models": own, **others}
    variants = [parse(f"cpu-onnxruntime-int8-minmax-16-r{one}") for one in range(REPAIRS)]
    jobs: list[tuple[str, Variant]] = [(name, one) for name in parents for one in variants]
    own = {"training": [], "families": families(config, jobs), "variants": by_place(jobs)}
    own |= {"jobs": jobs, "measured": dict.fromkeys(("profile", "causes", *STUDIES), jobs)}
    return config, Plan(**{**dict.fromkeys(Plan._fields), **own})


STEPS = {
    "compared": lambda config, plan: compared(config, plan.jobs),
    "records": lambda config, plan: records(plan),
    "graphs": lambda config, plan: graphs_of(config, plan.jobs),
    "families": lambda config, plan: families(config, plan.jobs),
    "members": lambda config, plan: [
        raced(plan, models, place) for (_, place), models in plan.families.items()
    ],
    "races": lambda config, plan: [raced(plan, [model], place) for model, place in plan.variants],
}


@pytest.mark.parametrize("step", STEPS)
def test_eight_times_the_jobs_take_less_than_a_third_of_their_square(step: str) -> None:
    """64 times the time would be the square."""

    def seconds(models: int) -> float:
        """CPU seconds of a step, the least of three."""
        config, plan = many(models)
        timed = timeit.Timer(lambda: STEPS[step](config, plan), timer=time.process_time)
        return min(timed.repeat(number=1, repeat=3))

    assert seconds(TIMES * FEW) < TIMES**2 / 3 * seconds(FEW)
