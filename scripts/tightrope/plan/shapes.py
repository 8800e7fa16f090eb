"""Measured shapes of a model, and the shape buckets of its engines."""

import math
from collections.abc import Iterable
from typing import Any

from tightrope.errors import ConfigError, nearest
from tightrope.plan.hosts import devices_of
from tightrope.runtimes.shapes import PLURALS, Profile, all_ranges, in_words
from tightrope.signature import BATCH, IMAGE, SEQUENCE
from tightrope.variants import parse

SHORTEST = 32

# the sizes that distinguish shapes of texts and of images
OF_TEXTS, OF_IMAGES = (SEQUENCE,), ("height", "width")
# how many tokens of a shape of texts are no padding
TOKENS = "tokens"


def shapes_of(config: dict[str, Any], model: str) -> list[dict[str, int]]:
    """Return the `shapes` of the kind of the model's task, in their order."""
    sizes = OF_IMAGES if is_of_images(config, model) else OF_TEXTS
    return [shape for shape in config["shapes"] if set(sizes) <= set(shape)]


def sizes_in_words(config: dict[str, Any], model: str) -> str:
    """Return the measured sizes of the model for a resource: `64 128` tokens, or `224x224`."""
    sizes = OF_IMAGES if is_of_images(config, model) else OF_TEXTS
    shapes = shapes_of(config, model)
    return " ".join(dict.fromkeys("x".join(str(one[size]) for size in sizes) for one in shapes))


def full_shapes_of(config: dict[str, Any], model: str) -> list[dict[str, int]]:
    """Return the measured shapes of the model as if full, without `tokens`, each once.

    An operator computes padding like any other token.
    """
    return distinct(
        {name: size for name, size in shape.items() if name != TOKENS}
        for shape in shapes_of(config, model)
    )


def distinct(shapes: Iterable[dict[str, int]]) -> list[dict[str, int]]:
    """Return each shape once, in their order."""
    return list({tuple(sorted(shape.items())): shape for shape in shapes}.values())


def is_of_images(config: dict[str, Any], model: str) -> bool:
    """Return whether the model classifies images."""
    return config["models"][model]["task"] == IMAGE


def free_sizes(config: dict[str, Any], model: str) -> list[dict[str, int]]:
    """Return the free sizes of a model's shapes, each once: [batch, sequence], images [batch]."""
    axes = (BATCH,) if is_of_images(config, model) else (BATCH, SEQUENCE)
    return distinct({axis: shape[axis] for axis in axes} for shape in shapes_of(config, model))


def buckets_of(config: dict[str, Any], model: str) -> dict[str, list[int]] | None:
    """Return `buckets` for one model, None for engines with dynamic shapes.

    `auto`: the batches of `shapes` and 1; powers of two from 32 tokens to the longest measured
    sequence, which is the last bucket. Images have batches only.
    """
    if config["buckets"] is None:
        return None
    if config["buckets"] != "auto":
        axes = (BATCH,) if is_of_images(config, model) else PLURALS
        return {axis: config["buckets"][axis] for axis in axes}
    shapes = shapes_of(config, model)
    found = {BATCH: sorted({1, *(shape[BATCH] for shape in shapes)})}
    if not is_of_images(config, model):
        lengths = [config["models"][model]["max_sequence"], *(one[SEQUENCE] for one in shapes)]
        last = max(lengths)
        powers = (2**n for n in range(last.bit_length()))
        found[SEQUENCE] = [*(one for one in powers if SHORTEST <= one < last), last]
    return found


def profiles_of(config: dict[str, Any], model: str) -> list[Profile]:
    """Return `tensorrt.profiles` for one model.

    `auto`: one profile for each of `shapes`, which takes no other, and one for every other request
    to the model. The kernels of a profile must be valid for all that it takes.
    """
    axes = [axis for axis in PLURALS if axis == BATCH or not is_of_images(config, model)]
    chosen = config["tensorrt"]["profiles"]
    if chosen != "auto":
        wanted = [[one[axis] for axis in axes] for one in chosen]
        return [Profile.of(list(zip(*sizes, strict=True))) for sizes in wanted]
    shapes = [tuple(sizes.values()) for sizes in free_sizes(config, model)]
    asked = {
        BATCH: [config["traffic"]["batch"]] * is_loaded(config),
        SEQUENCE: [config["models"][model]["max_sequence"]],
    }
    sizes = dict(zip(axes, zip(*shapes, strict=True), strict=True))
    largest = tuple(max([*asked[axis], *sizes[axis]]) for axis in axes)
    wide = Profile((1,) * len(axes), max(shapes, key=math.prod), largest)
    return list(dict.fromkeys([*(Profile(one, one, one) for one in shapes), wide]))


def has_profiles(config: dict[str, Any], engine: str, device: str) -> bool:
    """Return whether an engine is built for the shapes of `tensorrt.profiles` on a device."""
    by_provider = engine == "onnxruntime" and config["onnxruntime"]["provider"] == "tensorrt"
    return device == "cuda" and (engine == "tensorrt" or by_provider)


def is_loaded(config: dict[str, Any]) -> bool:
    """Return whether traffic is measured for a variant with optimization profiles."""
    loaded = [parse(name) for name in config["traffic"]["variants"]]
    return any(has_profiles(config, one.engine, one.device) for one in loaded)


def check_profiles(config: dict[str, Any]) -> None:
    """Profiles must be in order, and measured sizes must lie within them."""
    engines = [one for one, precisions in config["engines"].items() if precisions]
    devices = devices_of(config)
    if not any(has_profiles(config, one, device) for one in engines for device in devices):
        return
    if config["tensorrt"]["profiles"] != "auto":
        check_order(config["tensorrt"]["profiles"])
    for name, model in config["models"].items():
        profiles = profiles_of(config, name)
        for shape in (tuple(sizes.values()) for sizes in free_sizes(config, name)):
            if not any(one.holds(*shape) for one in profiles):
                raise outside(f"shapes: {in_words(shape)}", profiles)
        longest = 0 if is_of_images(config, name) else model["max_sequence"]
        if longest > max(one.max[-1] for one in profiles):
            raise outside(f"models.{name}.max_sequence = {longest}", profiles)
        batch = config["traffic"]["batch"]
        if is_loaded(config) and batch > max(one.max[0] for one in profiles):
            raise outside(f"traffic.batch = {batch}", profiles)


def check_order(profiles: list[dict[str, list[int]]]) -> None:
    """Raise ConfigError unless the sizes of each profile are 1 <= min <= opt <= max."""
    for number, profile in enumerate(profiles):
        for size in profile:
            if profile[size] != sorted(profile[size]) or profile[size][0] < 1:
                raise ConfigError(
                    f"config: tensorrt.profiles[{number}].{size} = {profile[size]}: not "
                    "1 <= min <= opt <= max; write the three in ascending order"
                )


def outside(place: str, profiles: list[Profile]) -> ConfigError:
    """Return the error for a size that lies in no profile, by the location of its key."""
    return ConfigError(
        f"config: {place}: in none of tensorrt.profiles, which are for {all_ranges(profiles)}; "
        "widen one of them, or set profiles: auto"
    )


def check_measured(config: dict[str, Any], key: str, shape: dict[str, int] | None) -> None:
    """Raise ConfigError where `key` of the configuration names a shape that no model has."""
    known = [one for model in config["models"] for one in shapes_of(config, model)]
    if shape is not None and shape not in known:
        names, asked = list(dict.fromkeys(map(as_written, known))), as_written(shape)
        raise ConfigError(
            f"config: {key} = {asked}: not measured{nearest(asked, names)}; "
            f"shapes has {', '.join(names)}"
        )


def as_written(shape: dict[str, int]) -> str:
    """Format a shape as it is configured: {batch: 1, sequence: 64}."""
    return "{" + ", ".join(f"{name}: {size}" for name, size in shape.items()) + "}"
