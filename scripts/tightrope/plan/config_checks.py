"""The checked configuration: constraints between its keys, and between it and this machine."""

import os
from typing import Any

from tightrope.checkpoint import source as checkpoint_source
from tightrope.config.read import read
from tightrope.engine_table import ENGINES
from tightrope.errors import ConfigError, nearest
from tightrope.machine.cores import cpu_quota
from tightrope.machine.counters import package_meter
from tightrope.machine.host import describe_host
from tightrope.plan import model_checks
from tightrope.plan.distillation import check_distillation
from tightrope.plan.hosts import (
    Document,
    check_hosts,
    devices_of,
    names_of,
    planning_host,
    runs_here,
    uses_gpu,
)
from tightrope.plan.pruning import check_targets
from tightrope.plan.shapes import (
    buckets_of,
    check_measured,
    check_profiles,
    free_sizes,
    has_profiles,
    is_of_images,
    shapes_of,
)
from tightrope.plan.studies import check_studies
from tightrope.plan.variants import configured, kind_of
from tightrope.signature import SEQUENCE
from tightrope.statistics import accuracy_verdict, paired_difference
from tightrope.studies.table import STUDIES
from tightrope.variants import AUTO, GIVEN, Variant, parse

# the largest number of examples that is suggested
MOST = 100_000
# the scenarios of LoadGen that measure what a goal minimizes, or its bound of p99
MEASURED_BY = {
    "latency": ("single_stream",),
    "cost": ("offline", "server"),
    "memory": ("single_stream", "offline", "server"),
    "energy": (),
}
WITH_P99 = ("single_stream", "server")


def check_counts(config: Document) -> None:
    """No sample count may be larger than the pool of calibration examples.

    A measured training needs an epoch after the first, which may compile.
    """
    if config["training"]["epochs"] == 1:
        raise ConfigError(
            "config: training.epochs = 1: the first epoch is told apart, as it may compile; take "
            "2 or more, or 0 to measure none"
        )
    pool = config["calibration"]["pool"]
    for count in config["calibration"]["samples"]:
        if count > pool:
            raise ConfigError(
                f"config: calibration.samples = {count}: more than calibration.pool = {pool}; "
                "enlarge the pool or take fewer samples"
            )


def check_search(config: Document) -> None:
    """The pool must be large enough to verify the accuracy budget of int8-auto."""
    pool, points = config["calibration"]["pool"], config["accuracy_budget_points"]
    searched = any(one.precision == AUTO for one in configured_variants(config))
    if searched and not can_tell(pool, points / 100):
        enough = enough_samples(pool, points / 100)
        remedy = f"take a pool of {enough}, " if enough else ""
        raise ConfigError(
            f"config: accuracy_budget_points = {points:g}: more than calibration.pool = {pool} can "
            f"tell for {AUTO}; {remedy}a larger budget, or leave {AUTO} out"
        )


def check_threads(config: Document) -> None:
    """Threads must not exceed the processors that jobs may use, where they run on this machine."""
    processors = min(len(os.sched_getaffinity(0)), cpu_quota())
    if runs_here(config) and config["threads"] != "auto" and config["threads"] > processors:
        raise ConfigError(
            f"config: threads = {config['threads']}: this process may use {processors} processors; "
            "take fewer, or name the host that the jobs run on (`host`)"
        )


def check_given(config: Document) -> None:
    """A model that is quantized already needs an engine that runs it as it is."""
    host = planning_host()
    for name, model in config["models"].items():
        if model["quantized"] and not any(
            one.precision == GIVEN for one in configured(config, name, host)
        ):
            raise ConfigError(
                f"config: models.{name}.quantized: no engine runs the file as it is; add a "
                "precision that is otherwise calibrated to an engine, as engines: {onnxruntime: "
                "[int8]}, {openvino: [int8]} or {tensorrt: [int8-fp16]}"
            )


def check_devices(config: Document) -> None:
    """A forced device must have a configured precision, unless no precision is configured."""
    asked = {engine: names for engine, names in config["engines"].items() if names}
    forced = config["devices"] != "auto" or config["hosts"]
    for device in devices_of(config) if asked and forced else ():
        there = {engine: ENGINES[engine].precisions.get(device, ()) for engine in asked}
        if not any(set(names) & set(there[engine]) for engine, names in asked.items()):
            words = "; ".join(f"{engine}: {', '.join(names)}" for engine, names in asked.items())
            raise ConfigError(
                f"config: devices = {[*devices_of(config)]}: no configured engine has one of its "
                f"precisions on {device} ({words}); add one that has, or leave {device} out"
            )


def configured_variants(config: Document) -> list[Variant]:
    """Return the variants of all models without duplicates; raise as `configured` does."""
    host = planning_host()
    kinds: dict[tuple[bool, bool, bool], str] = {}
    for name, model in config["models"].items():
        kinds.setdefault(kind_of(model), name)
    found = [one for name in kinds.values() for one in configured(config, name, host)]
    return list(dict.fromkeys(found))


def check_named_variants(config: Document) -> None:
    """Traffic, profiles and studies are measured for configured variants only."""
    known = names_of(configured_variants(config))
    for key in ("profile", *STUDIES):
        names = config[key]["variants"]
        for name in names if names != "auto" else ():
            if name not in known:
                raise ConfigError(
                    f"config: {key}.variants: {name}: no configured variant{nearest(name, known)}"
                )


def check_buckets(config: Document) -> None:
    """Measured sizes must lie within the shape buckets, and TVM needs buckets."""
    planned = {variant.engine for variant in configured_variants(config)}
    if config["buckets"] is None and "tvm" in planned:
        raise ConfigError("config: buckets = null: tvm compiles static shapes; set buckets: auto")
    if not has_static_engines(config):
        return
    loaded = [parse(name) for name in config["traffic"]["variants"]]
    for name, model in config["models"].items():
        buckets = buckets_of(config, name)
        if buckets is None:
            continue
        sizes = free_sizes(config, name)
        wanted = [(f"shapes: {key}", key, one[key]) for one in sizes for key in buckets]
        if SEQUENCE in buckets:
            wanted.append((f"models.{name}.max_sequence", SEQUENCE, model["max_sequence"]))
        if any(has_buckets(config, variant) for variant in loaded):
            wanted.append(("traffic.batch", "batch", config["traffic"]["batch"]))
        for place, key, size in wanted:
            if size > max(buckets[key]):
                raise ConfigError(
                    f"config: {place} = {size}: beyond buckets.{key} = {buckets[key]}; give "
                    "buckets that hold it, or buckets: null for OpenVINO without static shapes"
                )


def has_static_engines(config: Document) -> bool:
    """Return whether a planned variant has one program per shape bucket."""
    on_gpu = uses_gpu(config)
    return any(
        has_buckets(config, variant)
        for variant in configured_variants(config)
        if on_gpu or variant.device == "cpu"
    )


def has_buckets(config: Document, variant: Variant) -> bool:
    """Return whether `variant` has one program per shape bucket."""
    if variant.device == "cpu":
        return ENGINES[variant.engine].static
    graphs = config["cuda"]["graphs"] and "graphs" in ENGINES[variant.engine].cuda
    return graphs and not has_profiles(config, variant.engine, variant.device)


def check_shapes(config: Document) -> None:
    """No sequence may exceed a model's maximum, where it is known without downloading the model."""
    for name, model in config["models"].items():
        if is_of_images(config, name):
            continue
        longest = checkpoint_source.longest_sequence(model["checkpoint"])
        if longest is None:
            continue
        shapes = shapes_of(config, name)
        lengths = {f"shapes: sequence = {one[SEQUENCE]}": one[SEQUENCE] for one in shapes}
        lengths[f"models.{name}.max_sequence = {model['max_sequence']}"] = model["max_sequence"]
        for key in ("train", "qat"):
            if model[key]:
                length = model[key]["sequence"]
                lengths[f"models.{name}.{key}.sequence = {length}"] = length
        if isinstance(config["buckets"], dict) and has_static_engines(config):
            edges = config["buckets"]["sequence"]
            lengths |= {f"buckets.sequence = {edge}": edge for edge in edges}
        for key, length in lengths.items():
            if length > longest:
                raise ConfigError(f"config: {key}: {name} takes at most {longest} tokens")


def check_goal(config: dict[str, Any]) -> None:
    """The goal must be about something that is measured; raise ConfigError naming what is."""
    goal = config["goal"]
    if goal is None:
        return
    if goal["shape"] is not None and goal["traffic"] is not None:
        raise ConfigError("config: goal: has shape and traffic; give one of them")
    check_measured(config, "goal.shape", goal["shape"])
    if goal["traffic"] is not None:
        check_goal_traffic(config)
    may_show = not runs_here(config) or package_meter() or describe_host()["gpu"]
    if goal["minimize"] == "energy" and not may_show:
        raise ConfigError(
            "config: goal.minimize = energy: this machine shows no energy (/sys/class/powercap is "
            "not readable, and there is no GPU); minimize latency, cost or memory"
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


def can_tell(samples: int, budget: float) -> bool:
    """Return whether `samples` examples without a change prove that the budget is kept.

    `budget` is the fraction by which accuracy may fall.
    """
    return accuracy_verdict(paired_difference(0, 0, samples), budget) == "kept"


def enough_samples(samples: int, budget: float) -> int | None:
    """Return the smallest number from `samples` on that can tell, None if above MOST."""
    return next((count for count in range(samples, MOST) if can_tell(count, budget)), None)


CHECKS = (
    check_hosts,
    check_counts,
    configured_variants,
    check_devices,
    check_search,
    check_threads,
    check_named_variants,
    check_studies,
    model_checks.check_sources,
    model_checks.check_checkpoints,
    model_checks.check_recipes,
    check_targets,
    check_given,
    model_checks.check_kinds,
    check_distillation,
    check_shapes,
    check_buckets,
    check_profiles,
    check_goal,
    model_checks.check_tables,
)


def checked(config: Document, *, look: bool = True) -> Document:
    """Return `config` with defaults filled in; raise ConfigError with one line if invalid.

    Without `look` each value is checked by itself only, which needs neither the user's files nor
    the machine: the processes of jobs parse the Snakefile too, and what the main process has found
    right is not looked at again.
    """
    filled = read(config, {name: one.settings for name, one in STUDIES.items()})
    for check in CHECKS if look else ():
        check(filled)
    return filled
