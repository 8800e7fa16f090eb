"""Constraints between the goal and what the configuration measures."""

from typing import Any

from tightrope.errors import ConfigError, nearest
from tightrope.machine.energy import package_meter
from tightrope.machine.host import describe_host
from tightrope.plan.hosts import runs_here
from tightrope.plan.shapes import shapes_of

# the scenarios of LoadGen that measure what a goal minimizes, or its bound of p99
MEASURED_BY = {
    "latency": ("single_stream",),
    "cost": ("offline", "server"),
    "memory": ("single_stream", "offline", "server"),
    "energy": (),
}
WITH_P99 = ("single_stream", "server")


def check_goal(config: dict[str, Any]) -> None:
    """The goal must be about something that is measured; raise ConfigError naming what is."""
    goal = config["goal"]
    if goal is None:
        return
    if goal["shape"] is not None and goal["traffic"] is not None:
        raise ConfigError("config: goal: has shape and traffic; give one of them")
    if goal["shape"] is not None:
        check_goal_shape(config)
    if goal["traffic"] is not None:
        check_goal_traffic(config)
    if goal["minimize"] == "energy" and not may_show_energy(config):
        raise ConfigError(
            "config: goal.minimize = energy: this machine shows no energy (/sys/class/powercap is "
            "not readable, and there is no GPU); minimize latency, cost or memory"
        )


def check_goal_shape(config: dict[str, Any]) -> None:
    """A goal's shape must be measured for a model."""
    shape = config["goal"]["shape"]
    known = [one for model in config["models"] for one in shapes_of(config, model)]
    if shape not in known:
        names = list(dict.fromkeys(map(in_words, known)))
        raise ConfigError(
            f"config: goal.shape = {in_words(shape)}: not measured"
            f"{nearest(in_words(shape), names)}; shapes has {', '.join(names)}"
        )


def check_goal_traffic(config: dict[str, Any]) -> None:
    """A goal's traffic must be configured and measure what the goal is about."""
    goal, traffic = config["goal"], config["traffic"]
    scenario = goal["traffic"]
    place = f"config: goal.traffic = {scenario}:"
    if not traffic["variants"]:
        raise ConfigError(f"{place} no traffic is measured; name variants in traffic.variants")
    if scenario not in traffic["scenarios"]:
        known = ", ".join(traffic["scenarios"])
        raise ConfigError(f"{place} not configured; traffic.scenarios has {known}")
    measuring = MEASURED_BY[goal["minimize"]]
    if scenario not in measuring:
        remedy = f"take {' or '.join(measuring)}" if measuring else "take a shape"
        raise ConfigError(f"{place} does not measure {goal['minimize']}; {remedy}")
    if goal["p99_ms"] is not None and scenario not in WITH_P99:
        raise ConfigError(f"{place} has no p99_ms; take {' or '.join(WITH_P99)}")


def in_words(shape: dict[str, int]) -> str:
    """Format a shape as it is configured: {batch: 1, sequence: 64}."""
    return "{" + ", ".join(f"{name}: {size}" for name, size in shape.items()) + "}"


def may_show_energy(config: dict[str, Any]) -> bool:
    """Return whether energy may be measured: counters of this machine, or jobs elsewhere."""
    if not runs_here(config):
        return True
    return package_meter() is not None or describe_host()["gpu"] is not None
