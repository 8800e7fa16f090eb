"""Check the configured cascades: their models, data, variants and batch."""

from typing import Any

from tightrope.engine_table import ENGINES
from tightrope.errors import ConfigError, nearest
from tightrope.plan.cascades import LARGE, SMALL, batch_of
from tightrope.plan.derived import OF_DATA
from tightrope.plan.planned_on import planning_host
from tightrope.plan.shapes import buckets_of
from tightrope.plan.variants import configured
from tightrope.signature import BATCH
from tightrope.variants import parse

Document = dict[str, Any]


def check_cascades(config: Document) -> None:
    """A cascade needs two models with the same data, and variants on one device."""
    for name, asked in config["cascades"].items():
        check_models(config, name, asked)
        check_variants(config, name, asked)
        check_batch(config, name, asked)


def check_models(config: Document, name: str, asked: Document) -> None:
    """Raise ConfigError where the models are unknown, the same, or have other data."""
    models, place = config["models"], f"config: cascades.{name}"
    for key in (SMALL, LARGE):
        if asked[key] not in models:
            raise ConfigError(
                f"{place}.{key} = {asked[key]}: no model of that name"
                f"{nearest(asked[key], list(models))}"
            )
    small, large = asked[SMALL], asked[LARGE]
    if small == large:
        raise ConfigError(f"{place}: small and large are both {small}; name two models")
    for key in OF_DATA:
        if models[small][key] != models[large][key]:
            raise ConfigError(
                f"{place}: {small} has {key} = {models[small][key]}, {large} has "
                f"{models[large][key]}; both must have the same examples in the same splits"
            )
    if models[large]["data"] == "random" and asked["agreement"] is None:
        raise ConfigError(
            f"{place}: random data have no labels, so no accuracy can be kept; set agreement, the "
            "share of answers that must be those of the large model"
        )


def check_variants(config: Document, name: str, asked: Document) -> None:
    """Raise ConfigError where a named variant is not configured, or on another device."""
    host, place = planning_host(), f"config: cascades.{name}.variants"
    named = {key: variant for key, variant in asked["variants"].items() if variant}
    for key, variant in named.items():
        known = [str(one) for one in configured(config, asked[key], host)]
        if variant not in known:
            raise ConfigError(
                f"{place}.{key}: {variant}: no configured variant of {asked[key]}"
                f"{nearest(variant, known)}"
            )
    if len({parse(variant).place for variant in named.values()}) > 1:
        raise ConfigError(
            f"{place}: {' and '.join(named.values())} run on two devices or hosts; take variants "
            "of one"
        )


def check_batch(config: Document, name: str, asked: Document) -> None:
    """Raise ConfigError where a batch is beyond the buckets of an engine with static shapes."""
    buckets = buckets_of(config, asked[LARGE])
    batches = {f"cascades.{name}.batch": batch_of(config, asked)}
    if asked["traffic"]:
        batches["traffic.batch"] = config["traffic"]["batch"]
    host = planning_host()
    engines = {one.engine for key in (SMALL, LARGE) for one in configured(config, asked[key], host)}
    static = any(ENGINES[engine].static for engine in engines)
    for key, batch in batches.items():
        if static and buckets is not None and batch > max(buckets[BATCH]):
            raise ConfigError(
                f"config: {key} = {batch}: beyond buckets.batch = {buckets[BATCH]}, which the "
                f"engines of cascades.{name} are built for; give buckets that hold it, or take a "
                "smaller one"
            )
