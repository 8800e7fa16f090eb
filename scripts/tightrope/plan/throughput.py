"""Variants whose throughput is measured: their jobs, settings and checks."""

from collections.abc import Sequence
from typing import Any

from tightrope.checkpoint import source as checkpoint_source
from tightrope.engine_table import ENGINES
from tightrope.errors import ConfigError, nearest
from tightrope.plan.hosts import asked_by_name, names_of
from tightrope.plan.planned_on import planning_host
from tightrope.plan.shapes import buckets_of, is_of_images
from tightrope.plan.variants import configured
from tightrope.signature import BATCH, SEQUENCE
from tightrope.variants import Variant, parse

Document = dict[str, Any]
Jobs = list[tuple[str, Variant]]


def measured_throughputs(config: Document, jobs: Jobs) -> Jobs:
    """Return the jobs whose throughput is measured."""
    return asked_by_name(jobs, config["throughput"]["variants"])


def throughput_settings(config: Document, wildcards: Any) -> Document:
    """Return the `throughput` settings that apply to the jobs of a model.

    Without its variants, because adding one changes no other job; for images without `sequence`.
    """
    settings = {key: value for key, value in config["throughput"].items() if key != "variants"}
    if is_of_images(config, wildcards.model):
        del settings["sequence"]
    return settings


def check_throughput(config: Document) -> None:
    """Throughput is measured for configured variants on a CPU, at sizes that they take."""
    host, asked = planning_host(), config["throughput"]
    if not asked["variants"]:
        return
    known = {name: names_of(configured(config, name, host)) for name in config["models"]}
    every = [variant for variants in known.values() for variant in variants]
    for variant in asked["variants"]:
        if variant not in every:
            raise ConfigError(
                f"config: throughput.variants: {variant}: no configured variant"
                f"{nearest(variant, every)}"
            )
        if parse(variant).device != "cpu":
            raise ConfigError(
                f"config: throughput.variants: {variant}: instances share the cores of a CPU; "
                "cuda: {streams: [2, 4]} measures throughput on a GPU"
            )
    for name, variants in known.items():
        wanted = [parse(one) for one in asked["variants"] if one in variants]
        if wanted:
            check_sizes(config, name, wanted)


def check_sizes(config: Document, model: str, variants: Sequence[Variant]) -> None:
    """Raise ConfigError where a batch or the sequence is beyond the model or its buckets."""
    asked, images = config["throughput"], is_of_images(config, model)
    longest = checkpoint_source.longest_sequence(config["models"][model]["checkpoint"])
    if not images and longest is not None and asked["sequence"] > longest:
        raise ConfigError(
            f"config: throughput.sequence = {asked['sequence']}: {model} takes at most {longest} "
            "tokens"
        )
    buckets = buckets_of(config, model)
    if buckets is None or not any(ENGINES[one.engine].static for one in variants):
        return
    sizes = [("batches", BATCH, max(asked["batches"]))]
    if not images:
        sizes.append(("sequence", SEQUENCE, asked["sequence"]))
    for key, axis, size in sizes:
        if size > max(buckets[axis]):
            raise ConfigError(
                f"config: throughput.{key} = {size}: beyond buckets.{axis} = {buckets[axis]}; give "
                "buckets that hold it, or take a smaller one"
            )
