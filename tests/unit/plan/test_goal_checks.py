"""Goals that nothing measures are refused in one line before anything runs."""

import re
from pathlib import Path
from typing import Any

import pytest
from tightrope.errors import ConfigError
from tightrope.plan import goal_checks
from tightrope.plan.config import checked
from tightrope.plan.job_params import goal_of_race

MODEL = {"checkpoint": "scratch:bert?max_position_embeddings=512", "data": "random"}
SHAPES = [{"batch": 1, "sequence": 64}, {"batch": 16, "sequence": 128}]
TRAFFIC = {"variants": ["cpu-pytorch-fp32"], "scenarios": ["single_stream", "offline"]}


@pytest.fixture
def schema(repository: Path) -> Path:
    return repository / "config" / "schema.yaml"


def filled(schema: Path, goal: Any, **changes: Any) -> dict[str, Any]:
    given = {"models": {"tiny": MODEL}, "shapes": SHAPES, "devices": ["cpu"], "goal": goal}
    return checked({**given, **changes}, schema)


def refused(schema: Path, goal: Any, **changes: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        filled(schema, goal, **changes)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_goal_has_every_key_and_its_numbers_may_come_from_the_command_line(schema: Path) -> None:
    words = {"minimize": "cost", "p99_ms": "5", "shape": {"batch": "1", "sequence": "64"}}
    found = filled(schema, words, prices={"*": "0.17"})
    assert found["goal"] == {
        "minimize": "cost",
        "shape": SHAPES[0],
        "traffic": None,
        "p99_ms": 5,
        "memory_mb": None,
        "accuracy_points": None,
    }
    assert found["prices"] == {"*": 0.17}
    assert filled(schema, None)["goal"] is None


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ({"minimize": "latncy"}, "goal.minimize = 'latncy'.*did you mean \"latency\""),
        ({"minimise": "latency"}, 'goal.minimise: unknown key; did you mean "minimize"'),
        ({"minimize": "latency", "p99": 5}, 'goal.p99: unknown key; did you mean "p99_ms"'),
        ({"p99_ms": 5}, "goal: the key minimize is missing"),
        ({"minimize": "cost", "traffic": "ofline"}, 'goal.traffic.*did you mean "offline"'),
        ({"minimize": "latency", "p99_ms": 0}, "goal.p99_ms = 0"),
        ("latency", "goal = 'latency': must be object or null"),
    ],
)
def test_a_misspelt_goal_is_named_with_the_nearest_word(
    goal: Any, words: str, schema: Path
) -> None:
    assert re.search(words, refused(schema, goal))


def test_a_shape_that_is_not_measured_is_named_with_those_that_are(schema: Path) -> None:
    message = refused(schema, {"minimize": "latency", "shape": {"batch": 1, "sequence": 65}})
    assert message == (
        "config: goal.shape = {batch: 1, sequence: 65}: not measured; did you mean "
        '"{batch: 1, sequence: 64}"?; shapes has {batch: 1, sequence: 64}, '
        "{batch: 16, sequence: 128}"
    )


def test_the_order_of_the_sizes_of_a_shape_does_not_matter(schema: Path) -> None:
    goal = {"minimize": "latency", "shape": {"sequence": 64, "batch": 1}}
    assert filled(schema, goal)["goal"]["shape"] == SHAPES[0]


@pytest.mark.parametrize(
    ("goal", "traffic", "words"),
    [
        ({"traffic": "offline"}, {}, "no traffic is measured; name variants"),
        ({"traffic": "server"}, TRAFFIC, "not configured; traffic.scenarios has single_stream, o"),
        ({"traffic": "single_stream"}, TRAFFIC, "does not measure cost; take offline or server"),
        ({"traffic": "offline", "p99_ms": 5}, TRAFFIC, "has no p99_ms; take single_stream or ser"),
        ({"traffic": "offline", "shape": SHAPES[0]}, TRAFFIC, "has shape and traffic; give one"),
    ],
)
def test_traffic_must_be_configured_and_measure_what_the_goal_is_about(
    goal: dict[str, Any], traffic: dict[str, Any], words: str, schema: Path
) -> None:
    assert words in refused(schema, {"minimize": "cost", **goal}, traffic=traffic)


def test_traffic_that_measures_it_is_taken(schema: Path) -> None:
    goal = {"minimize": "latency", "traffic": "single_stream", "p99_ms": 20}
    assert filled(schema, goal, traffic=TRAFFIC)["goal"]["traffic"] == "single_stream"


def test_energy_needs_a_machine_that_shows_it(
    schema: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = {**goal_checks.describe_host(), "gpu": None}
    monkeypatch.setattr(goal_checks, "describe_host", lambda: without)
    monkeypatch.setattr(goal_checks, "package_meter", lambda: None)
    message = refused(schema, {"minimize": "energy"})
    assert message.startswith("config: goal.minimize = energy: this machine shows no energy")
    # the jobs run on another machine, which may show it
    assert filled(schema, {"minimize": "energy"}, host="node-a")["goal"]["minimize"] == "energy"


@pytest.mark.parametrize("prices", [{"myhost": 0.17}, {"*": 0}, {"*": "cheap"}])
def test_a_price_has_a_host_and_is_above_zero(prices: dict[str, Any], schema: Path) -> None:
    message = refused(schema, None, prices=prices)
    assert message.startswith("config: prices")
    if "myhost" in prices:
        assert "config: prices.myhost: no host of that name" in message


@pytest.mark.parametrize(
    ("goal", "raced"),
    [
        (None, None),
        ({"minimize": "latency"}, None),
        ({"minimize": "cost", "memory_mb": 500}, {"minimize": "time", "memory_mb": 500}),
        ({"minimize": "memory"}, {"minimize": "memory"}),
        (
            {"minimize": "memory", "p99_ms": 5, "shape": SHAPES[0]},
            {"minimize": "memory", "p99_ms": 5, "shape": SHAPES[0]},
        ),
    ],
)
def test_a_goal_changes_the_race_where_the_fastest_may_not_be_chosen(
    goal: Any, raced: Any, schema: Path
) -> None:
    keys = ("minimize", "shape", "p99_ms", "memory_mb", "accuracy_points")
    expected = raced and {**dict.fromkeys(keys), **raced}
    assert goal_of_race(filled(schema, goal), None) == expected


def test_a_goal_of_traffic_changes_no_race(schema: Path) -> None:
    goal = {"minimize": "memory", "traffic": "offline"}
    assert goal_of_race(filled(schema, goal, traffic=TRAFFIC), None) is None
