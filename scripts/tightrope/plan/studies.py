"""Measurements that the configuration asks for: their jobs, settings and checks."""

from tightrope.checkpoint import source as checkpoint_source
from tightrope.engine_table import ENGINES
from tightrope.errors import ConfigError
from tightrope.plan.hosts import Document, Jobs, names_of, planning_host
from tightrope.plan.shapes import buckets_of, check_measured, is_of_images, shapes_of
from tightrope.plan.variants import configured
from tightrope.signature import BATCH, SEQUENCE
from tightrope.studies.table import STUDIES
from tightrope.variants import parse

# keys of a recipe that the measurement of a training sets itself
SET_BY_MEASUREMENT = ("epochs", "seed", "validate")
# settings of studies that models of images do not have
OF_TEXTS = ("sequence", "padding", "buckets")


def requested(config: Document, key: str, jobs: Jobs) -> Jobs:
    """Return the jobs of the variants that a key names; without a host those of each host."""
    wanted = set(config[key]["variants"])
    return [job for job in jobs if wanted & {str(job[1]), str(job[1].anywhere)}] if wanted else []


def profiled(config: Document, jobs: Jobs) -> Jobs:
    """Return the jobs of `profile.variants`; auto is each whose operators or kernels are timed."""
    if config["profile"]["variants"] != "auto":
        return requested(config, "profile", jobs)
    return [job for job in jobs if job[1].device == "cuda" or ENGINES[job[1].engine].profiled]


def measured_trainings(config: Document) -> list[str]:
    """Return the models whose training is measured: not students, whose time is their teacher's."""
    return [
        name
        for name, model in config["models"].items()
        if model["train"] and not model["distill"] and config["training"]["epochs"]
    ]


def recipe_to_measure(config: Document, model: str) -> Document:
    """Return the recipe without the keys that its measurement sets itself, such as `epochs`."""
    return without(config["models"][model]["train"], *SET_BY_MEASUREMENT)


def without(settings: Document, *keys: str) -> Document:
    """Return the settings without these keys: a change of them reruns no job."""
    return {key: value for key, value in settings.items() if key not in keys}


def study_settings(config: Document, name: str, model: str) -> Document:
    """Return the settings of a study for a model, for images without those of texts.

    A `shape` is the one that is named, or the first of a model that is not measured at it.
    """
    images = is_of_images(config, model)
    found = without(config[name], "variants", *OF_TEXTS if images else ())
    if "shape" in found:
        known = shapes_of(config, model)
        found["shape"] = found["shape"] if found["shape"] in known else known[0]
    return found


def check_studies(config: Document) -> None:
    """Studies measure configured variants, where they can, at sizes that these take."""
    host = planning_host()
    for study in STUDIES.values():
        settings = config[study.name]
        asked = settings["variants"]
        if "shape" in settings:
            check_measured(config, f"{study.name}.shape", settings["shape"])
        for name in asked if study.cpu_only else ():
            if parse(name).device != "cpu":
                raise ConfigError(f"config: {study.name}.variants: {name}: {study.cpu_only}")
        for model in config["models"] if asked and "batches" in settings else ():
            known = {*names_of(configured(config, model, host))}
            if engines := {parse(name).engine for name in asked if name in known}:
                static = any(ENGINES[one].static for one in engines)
                check_sizes(config, study.name, model, static=static)


def check_sizes(config: Document, name: str, model: str, *, static: bool) -> None:
    """Raise ConfigError where a batch or the sequence is beyond the model or its buckets."""
    asked, images = config[name], is_of_images(config, model)
    longest = checkpoint_source.longest_sequence(config["models"][model]["checkpoint"])
    if not images and longest is not None and asked["sequence"] > longest:
        raise ConfigError(
            f"config: {name}.sequence = {asked['sequence']}: {model} takes at most {longest} tokens"
        )
    sizes = [("batches", BATCH, max(asked["batches"]))]
    sizes += [] if images else [("sequence", SEQUENCE, asked["sequence"])]
    buckets = buckets_of(config, model) if static else None
    for key, axis, size in sizes if buckets else ():
        if buckets and size > max(buckets[axis]):
            raise ConfigError(
                f"config: {name}.{key} = {size}: beyond buckets.{axis} = {buckets[axis]}; give "
                "buckets that hold it, or take a smaller one"
            )
