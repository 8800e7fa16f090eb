"""Parameters of jobs: digests of their code, their part of the configuration, library versions.

What a job loads by name appears in no import statement, so its digest names it; `scripts` is the
folder of the scripts.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from tightrope.artifacts.provenance import code_digest, library_versions
from tightrope.checkpoint import source as checkpoint_source
from tightrope.data import source as data_sources
from tightrope.engine_table import ENGINES
from tightrope.plan.distillation import own_request
from tightrope.plan.hosts import Document
from tightrope.plan.job_inputs import data_source, from_checkpoint, reduces_range
from tightrope.plan.shapes import buckets_of, free_sizes, has_profiles, profiles_of, shapes_of_model
from tightrope.studies.table import STUDIES
from tightrope.training.recipe import QUANTIZATION_AWARE
from tightrope.variants import Variant, parse

# multiple of examples that are kept of a source
LIMIT_STEP = 2048
# functions of engines that scripts call besides `load`
FUNCTIONS = {
    **dict.fromkeys(("choose_structure.py", "measure_structures.py"), ("build",)),
    **{"measure_profile.py": ("operator_times", "layer_times"), "verify_causes.py": ("build",)},
}
# one dictionary for all jobs with the same libraries: Snakemake keeps the params of each job
shared_versions = cache(library_versions)


def repair_of(config: Document, wildcards: Any) -> Document:
    """Return the settings of the repair at the end of the calibration's name, else {}."""
    return config["repairs"].get("-".join(wildcards.calibration.split("-")[2:]), {})


def percentile_of(config: Document, wildcards: Any) -> float | None:
    """Return the percentile for the method of that name; None for others, which do not read it."""
    return config["calibration"]["percentile"] if wildcards.method == "percentile" else None


def engine_options(config: Document, model: str, variant: Variant) -> Document:
    """Return the engine's settings and other settings that shape the engine of a variant.

    On a GPU the keys of `cuda` that it reads, and `shapes` where kernels are tuned for them;
    buckets where it has a program for each; `reduce_range` where it quantizes for a CPU itself.
    """
    engine, on_gpu = variant.engine, variant.device == "cuda"
    read = {key: config["cuda"][key] for key in ENGINES[engine].cuda if on_gpu}
    options = dict(config.get(engine, {})) | read
    tuned = has_profiles(config, engine, variant.device)
    if engine == "onnxruntime" and not on_gpu:
        del options["provider"]
    if engine == "onnxruntime" and tuned:
        del options["graphs"]  # which its TensorRT provider does not make
    if tuned:
        profiles = profiles_of(config, model)
        options["profiles"] = [[list(shape) for shape in profile] for profile in profiles]
    elif ENGINES[engine].static or "graphs" in read:
        options["buckets"] = buckets_of(config, model)
    if "autotune" in read:
        options["shapes"] = [list(sizes.values()) for sizes in free_sizes(config, model)]
    if variant.precision in ENGINES[engine].reducible:
        options["reduce_range"] = reduces_range(config, variant)
    return options


def engine_libraries(*variants: str) -> dict[str, str | None]:
    """Return installed versions of the runtimes of these variants."""
    engines = {parse(variant).engine for variant in variants}
    return shared_versions(*[name for one in sorted(engines) for name in ENGINES[one].libraries])


def libraries_of(config: Document, engine: str) -> tuple[str, ...]:
    """Return the libraries that shape an engine's files: runtime, and PyTorch for conversion."""
    converting = ("torch", "transformers") if from_checkpoint(config, engine) else ()
    return tuple(dict.fromkeys([*ENGINES[engine].libraries, *converting]))


def latency_settings(config: Document) -> Document:
    """Return the `latency` settings without those that change no existing record.

    `accept_disturbed` applies when records are read; `quiet_seconds` is the wait before measuring.
    """
    other = ("accept_disturbed", "quiet_seconds")
    return {key: value for key, value in config["latency"].items() if key not in other}


def latency_of_model(config: Document, wildcards: Any) -> Document:
    """Return `latency_settings`, with a goal's bound of p99 as `p99_ms`, one per shape or None."""
    goal, settings = config["goal"], latency_settings(config)
    if goal is None or goal["traffic"] or goal["p99_ms"] is None:
        return settings
    wanted = [goal["shape"] in (None, one) for one in shapes_of_model(config, wildcards)]
    return {**settings, "p99_ms": [goal["p99_ms"] if one else None for one in wanted]}


def goal_of_race(config: Document, wildcards: Any) -> Document | None:
    """Return what of the goal decides which variants race, None where nothing of it does.

    A goal of traffic changes no race, nor does one of latency or cost without bounds.
    """
    goal = config["goal"]
    if goal is None or goal["traffic"]:
        return None
    of_time = goal["minimize"] in ("latency", "cost")
    bounds = {name: goal[name] for name in ("p99_ms", "memory_mb", "accuracy_points")}
    if of_time and all(limit is None for limit in bounds.values()):
        return None
    minimized = "time" if of_time else goal["minimize"]
    return {"minimize": minimized, "shape": goal["shape"], **bounds}


def streams_of(config: Document, wildcards: Any) -> list[int]:
    """Return the numbers of streams on which a variant is timed, none on a CPU."""
    on_gpu = parse(wildcards.variant).device == "cuda"
    return list(config["cuda"]["streams"]) if on_gpu else []


def limits_of(config: Document, wildcards: Any) -> dict[str, int | None]:
    """Return how many examples are kept for train with calibration and for evaluation.

    Sizes are rounded up, so that others usually need no other data; None keeps all.
    """
    sizes = split_sizes(config, wildcards.model)
    limits: dict[str, int | None] = {}
    for side, names in (("train", ("train", "calibration")), ("evaluation", ("evaluation",))):
        known = [size for name in names if (size := sizes[name]) is not None]
        whole = len(known) == len(names)
        limits[side] = -(-sum(known) // LIMIT_STEP) * LIMIT_STEP if whole else None
    return limits


def split_sizes(config: Document, model: str) -> dict[str, int | None]:
    """Return the configured size of each split of a model, None for all that there are."""
    return {**config["models"][model]["splits"], "calibration": config["calibration"]["pool"]}


def size_of(config: Document, split: str, wildcards: Any) -> int:
    """Return the size of a split as a resource of a job: 0 for all that there are."""
    return split_sizes(config, wildcards.model)[split] or 0


def deciding_sizes(config: Document, wildcards: Any) -> dict[str, int | None]:
    """Return the sizes that decide which examples are in the split of the wildcards."""
    sizes = split_sizes(config, wildcards.model)
    names: list[str] = {
        "timing": [],
        "evaluation": ["evaluation"],
        "calibration": ["calibration", "train"],
        "train": ["train"],
    }[wildcards.split]
    if wildcards.split == "train" and sizes["train"] is None:
        names = ["train", "calibration"]
        if data_sources.may_be_one_pool(**data_source(config, wildcards.model)):
            names += ["evaluation"]
    return {name: sizes[name] for name in names}


def variants_libraries(
    variants_of: Callable[[Any], Iterable[str]], wildcards: Any
) -> dict[str, str | None]:
    """Return installed versions of the runtimes of the variants of the wildcards."""
    return engine_libraries(*variants_of(wildcards))


def study_libraries(name: str, wildcards: Any) -> dict[str, str | None]:
    """Return installed versions of the runtime of the variant and of what measures the study."""
    return engine_libraries(wildcards.variant) | library_versions(*STUDIES[name].libraries)


def build_libraries(config: Document, wildcards: Any) -> dict[str, str | None]:
    """Return installed versions of what shapes and runs the engine of a variant."""
    own = libraries_of(config, parse(wildcards.variant).engine)
    return library_versions(*own) | engine_libraries(wildcards.variant)


def data_code(config: Document, scripts: str, wildcards: Any) -> str:
    """Return the digest for the job that prepares a model's data, with its source module."""
    model = config["models"][wildcards.model]
    modules = data_sources.modules(model["data"], task=model["task"])
    return code_digest(scripts, "prepare_data.py", *modules)


def checkpoint_code(config: Document, scripts: str, wildcards: Any) -> str:
    """Return the digest for the job that prepares a model's checkpoint, with its source module."""
    modules = checkpoint_source.modules(config["models"][wildcards.model]["checkpoint"])
    return code_digest(scripts, "prepare_checkpoint.py", *modules)


def training_code(config: Document, scripts: str, wildcards: Any) -> str:
    """Return the digest for the job that trains a model, or keeps an untrained checkpoint."""
    model = config["models"][wildcards.model]
    learnt = [f"{QUANTIZATION_AWARE}.py"] if model.get("qat") else []
    modules = checkpoint_source.importer_modules(model["checkpoint"])
    return code_digest(scripts, "train_model.py", *modules, *learnt)


def teacher_code(config: Document, scripts: str, wildcards: Any) -> str:
    """Return the digest for the job that runs a teacher, with the module of unlabelled texts."""
    source = own_request(config, wildcards).get("unlabelled")
    return code_digest(scripts, "run_teacher.py", *(data_sources.modules(source) if source else ()))


def study_code(scripts: str, study: str, wildcards: Any) -> str:
    """Return the digest of what measures a study of the variant, with its engine."""
    load = f"tightrope/engines/{parse(wildcards.variant).engine}.py:load"
    measure = [f"tightrope/studies/{study}.py:{name}" for name in ("measure", "Settings")]
    return code_digest(scripts, "measure_study.py", *measure, load)


def variants_code(
    scripts: str, script: str, variants_of: Callable[[Any], Iterable[str]], wildcards: Any
) -> str:
    """Return the digest of a script and of the engines of the variants that it loads."""
    engines = sorted({parse(variant).engine for variant in variants_of(wildcards)})
    functions = ["load", *FUNCTIONS.get(script, ())]
    entries = [f"tightrope/engines/{one}.py:{name}" for one in engines for name in functions]
    return code_digest(scripts, script, *entries)
