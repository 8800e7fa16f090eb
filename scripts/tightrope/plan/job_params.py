"""Settings of jobs: their part of the configuration, without what changes none of their files."""

from tightrope.data import source as data_sources
from tightrope.engine_table import ENGINES
from tightrope.plan.hosts import Document
from tightrope.plan.job_inputs import data_source, from_checkpoint, reduces_range
from tightrope.plan.shapes import buckets_of, free_sizes, has_profiles, profiles_of, shapes_of
from tightrope.variants import Variant

# multiple of examples that are kept of a source
LIMIT_STEP = 2048


def percentile_of(config: Document, model: str, method: str) -> float | None:
    """Return the percentile for the method of that name; None for others, which do not read it."""
    return config["calibration"]["percentile"] if method == "percentile" else None


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


def latency_of_model(config: Document, model: str) -> Document:
    """Return `latency_settings`, with a goal's bound of p99 as `p99_ms`, one per shape or None."""
    goal, settings = config["goal"], latency_settings(config)
    if goal is None or goal["traffic"] or goal["p99_ms"] is None:
        return settings
    wanted = [goal["shape"] in (None, one) for one in shapes_of(config, model)]
    return {**settings, "p99_ms": [goal["p99_ms"] if one else None for one in wanted]}


def goal_of_race(config: Document) -> Document | None:
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


def limits_of(config: Document, model: str) -> dict[str, int | None]:
    """Return how many examples are kept for train with calibration and for evaluation.

    Sizes are rounded up, so that others usually need no other data; None keeps all.
    """
    sizes = split_sizes(config, model)
    limits: dict[str, int | None] = {}
    for side, names in (("train", ("train", "calibration")), ("evaluation", ("evaluation",))):
        known = [size for name in names if (size := sizes[name]) is not None]
        whole = len(known) == len(names)
        limits[side] = -(-sum(known) // LIMIT_STEP) * LIMIT_STEP if whole else None
    return limits


def split_sizes(config: Document, model: str) -> dict[str, int | None]:
    """Return the configured size of each split of a model, None for all that there are."""
    return {**config["models"][model]["splits"], "calibration": config["calibration"]["pool"]}


def deciding_sizes(config: Document, model: str, split: str) -> dict[str, int | None]:
    """Return the sizes that decide which examples are in a split of a model."""
    sizes = split_sizes(config, model)
    names: list[str] = {
        "timing": [],
        "evaluation": ["evaluation"],
        "calibration": ["calibration", "train"],
        "train": ["train"],
    }[split]
    if split == "train" and sizes["train"] is None:
        names = ["train", "calibration"]
        if data_sources.may_be_one_pool(**data_source(config, model)):
            names += ["evaluation"]
    return {name: sizes[name] for name in names}
