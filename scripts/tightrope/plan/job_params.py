"""What a job is told besides its files: its slice of the configuration, device and libraries."""

from typing import Any

from tightrope.artifacts.provenance import library_versions
from tightrope.checkpoint import source as checkpoint_source
from tightrope.data import source as data_sources
from tightrope.engine_table import ENGINES
from tightrope.measure.traffic.padding import UNPADDED
from tightrope.plan.config import Document
from tightrope.plan.job_inputs import data_source, from_checkpoint, reduces_range
from tightrope.plan.plan import Plan, baseline_of, raced
from tightrope.plan.profiles import profiles_of
from tightrope.plan.shapes import buckets_of, is_of_images
from tightrope.variants import parse


def repair_of(config: Document, wildcards: Any) -> Document:
    """The settings of the repair that ends the calibration's name, none where there is none."""
    return config["repairs"].get("-".join(wildcards.calibration.split("-")[2:]), {})


def percentile_of(config: Document, wildcards: Any) -> float | None:
    """The percentile for the method of that name, None for the others: a change is not theirs."""
    return config["calibration"]["percentile"] if wildcards.method == "percentile" else None


def engine_options(config: Document, engine: str, wildcards: Any) -> Document:
    """The engine's own section of the configuration, and what else of it shapes its engines.

    On a GPU that is what it reads of `cuda`; buckets where it has a program for each, and whether
    it keeps within 7 bits where it quantizes for a CPU itself.
    """
    on_gpu = wildcards.device == "cuda"
    read = {key: config["cuda"][key] for key in ENGINES[engine].cuda if on_gpu}
    options = dict(config.get(engine, {})) | read
    if engine.endswith("tensorrt"):
        profiles = profiles_of(config, wildcards.model)
        options["profiles"] = [[list(shape) for shape in profile] for profile in profiles]
    elif ENGINES[engine].static or "graphs" in read:
        options["buckets"] = buckets_of(config, wildcards.model)
    precision = parse(f"{wildcards.device}-{engine}-{wildcards.rest}").precision
    if not on_gpu and precision in ENGINES[engine].reducible:
        options["reduce_range"] = reduces_range(config)
    return options


def engine_libraries(*variants: str) -> dict[str, str | None]:
    """Installed versions of the runtimes of these variants."""
    engines = {parse(variant).engine for variant in variants}
    return library_versions(*[name for one in sorted(engines) for name in ENGINES[one].libraries])


def libraries_of(config: Document, engine: str) -> tuple[str, ...]:
    """What shapes the files of that engine: its runtime, and PyTorch where it converts from it."""
    own = ENGINES[engine].libraries
    return tuple(
        dict.fromkeys(
            [*own, *(("torch", "transformers") if from_checkpoint(config, engine) else ())]
        )
    )


def latency_settings(config: Document, wildcards: Any) -> Document:
    """`latency` of the configuration without what changes no record that is there.

    That is what is decided when records are read, and how long a job may wait before it measures.
    """
    other = ("accept_disturbed", "quiet_seconds")
    return {key: value for key, value in config["latency"].items() if key not in other}


def traffic_settings(config: Document, wildcards: Any) -> Document:
    """`traffic` of the configuration as far as it concerns the jobs of that model.

    Its variants are left out, for another one changes no other's job, and of images, which are not
    padded, the settings of padding.
    """
    settings = {key: value for key, value in config["traffic"].items() if key != "variants"}
    if is_of_images(config, wildcards.model):
        del settings["buckets"]
        settings["padding"] = [UNPADDED]
    return settings


def data_libraries(config: Document, wildcards: Any) -> dict[str, str | None]:
    """Versions of what shapes a model's data."""
    return data_sources.libraries(**data_source(config, wildcards.model))


def checkpoint_libraries(config: Document, wildcards: Any) -> dict[str, str | None]:
    """Versions of what shapes a model's checkpoint."""
    return checkpoint_source.libraries(config["models"][wildcards.model]["checkpoint"])


def accuracy_libraries(wildcards: Any) -> dict[str, str | None]:
    """Installed versions of the runtime of that variant."""
    return engine_libraries(wildcards.variant)


def latency_libraries(plan: Plan, wildcards: Any) -> dict[str, str | None]:
    """Installed versions of the runtimes of that variant and of its baseline."""
    return engine_libraries(wildcards.variant, baseline_of(plan, wildcards))


def race_libraries(plan: Plan, wildcards: Any) -> dict[str, str | None]:
    """Installed versions of the runtimes of all that race."""
    return engine_libraries(*raced(plan, "{variant}", wildcards))


def traffic_libraries(wildcards: Any) -> dict[str, str | None]:
    """Installed versions of the runtime of that variant and of LoadGen."""
    return engine_libraries(wildcards.variant) | library_versions("mlcommons-loadgen")
