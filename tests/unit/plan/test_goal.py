"""Goals that nothing measures are refused in one line; what of a goal a race depends on."""

import re
from typing import Any

import pytest
from configured import configured, refused
from tightrope.plan import config_checks
from tightrope.plan.job_params import goal_of_race

SHAPES = [{"batch": 1, "sequence": 64}, {"batch": 16, "sequence": 128}]
TRAFFIC = {"variants": ["cpu-pytorch-fp32"], "scenarios": ["single_stream", "offline"]}
MEASURED: dict[str, Any] = {"shapes": SHAPES, "devices": ["cpu"]}


def test_a_goal_has_every_key_and_its_numbers_may_come_from_the_command_line() -> None:
    words = {"minimize": "cost", "p99_ms": "5", "shape": {"sequence": "64", "batch": "1"}}
    found = configured(**MEASURED, goal=words, prices={"*": "0.17"})
    assert found["goal"] == {
        **{"minimize": "cost", "shape": SHAPES[0], "traffic": None},
        **{"p99_ms": 5, "memory_mb": None, "accuracy_points": None},
    }
    assert found["prices"] == {"*": 0.17}
    assert configured()["goal"] is None
    goal = {"minimize": "latency", "traffic": "single_stream", "p99_ms": 20}
    assert configured(**MEASURED, goal=goal, traffic=TRAFFIC)["goal"]["traffic"] == "single_stream"
    assert refused(goal={"p99_ms": 5}) == "config: goal: the key minimize is missing"


def test_a_goal_must_be_about_what_is_measured() -> None:
    for goal, traffic, words in (
        ({"minimize": "latncy"}, {}, "goal.minimize = 'latncy'.*did you mean \"latency\""),
        ({"minimize": None}, {}, "goal.minimize = None"),
        ({"traffic": "ofline"}, {}, 'goal.traffic.*did you mean "offline"'),
        ({"p99_ms": 0}, {}, "goal.p99_ms = 0"),
        (
            {"shape": {"batch": 1, "sequence": 65}},
            {},
            r"goal.shape = \{batch: 1, sequence: 65\}: not measured; did you mean "
            r'"\{batch: 1, sequence: 64\}"\?; shapes has \{batch: 1, sequence: 64\}, \{batch: 16, ',
        ),
        ({"traffic": "offline"}, {}, "no traffic is measured; name variants"),
        ({"traffic": "server"}, TRAFFIC, "not configured; traffic.scenarios has single_stream, o"),
        ({"traffic": "single_stream"}, TRAFFIC, "does not measure cost; take offline or server"),
        ({"traffic": "offline", "p99_ms": 5}, TRAFFIC, "has no p99_ms; take single_stream or ser"),
        ({"traffic": "offline", "shape": SHAPES[0]}, TRAFFIC, "has shape and traffic; give one"),
    ):
        message = refused(**MEASURED, goal={"minimize": "cost", **goal}, traffic=traffic)
        assert re.search(rf"^config: goal.*{words.removeprefix('goal')}", message)


def test_energy_needs_a_machine_that_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    without = {**config_checks.describe_host(), "gpu": None}
    monkeypatch.setattr(config_checks, "describe_host", lambda: without)
    monkeypatch.setattr(config_checks, "package_meter", lambda: None)
    message = refused(goal={"minimize": "energy"})
    assert message.startswith("config: goal.minimize = energy: this machine shows no energy")
    # the jobs run on another machine, which may show it
    configured(goal={"minimize": "energy"}, host="node-a")


def test_a_goal_changes_the_race_where_the_fastest_may_not_be_chosen() -> None:
    for goal, raced in (
        (None, None),
        ({"minimize": "latency"}, None),
        ({"minimize": "cost", "memory_mb": 500}, {"minimize": "time", "memory_mb": 500}),
        ({"minimize": "memory"}, {"minimize": "memory"}),
        ({"minimize": "memory", "p99_ms": 5, "shape": SHAPES[0]},) * 2,
        ({"minimize": "memory", "traffic": "offline"}, None),
    ):
        keys = ("minimize", "shape", "p99_ms", "memory_mb", "accuracy_points")
        expected = raced and {**dict.fromkeys(keys), **raced}
        assert goal_of_race(configured(**MEASURED, goal=goal, traffic=TRAFFIC)) == expected
