"""TensorRT optimization profiles from the configuration, and their checks."""

from typing import Any

from tightrope.errors import ConfigError
from tightrope.plan.hosts import devices_of
from tightrope.plan.shapes import free_sizes, is_of_images
from tightrope.runtimes.buckets import PLURALS, in_words
from tightrope.runtimes.tensorrt.profiles import Profile, all_ranges
from tightrope.signature import BATCH, SEQUENCE
from tightrope.variants import parse


def profiles_of(config: dict[str, Any], model: str) -> list[Profile]:
    """Return `tensorrt.profiles` for one model.

    `auto`: one profile for each of `shapes`, tuned for it. Each covers every request to the model,
    so that a request can use the profile that is tuned for the most similar shape.
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
    return [Profile((1,) * len(axes), shape, largest) for shape in shapes]


def has_profiles(config: dict[str, Any], engine: str, device: str) -> bool:
    """Return whether an engine is built for the shapes of `tensorrt.profiles` on a device."""
    return device == "cuda" and (engine == "tensorrt" or by_tensorrt_provider(config, engine))


def by_tensorrt_provider(config: dict[str, Any], engine: str) -> bool:
    """Return whether an engine on a GPU is ONNX Runtime with its TensorRT provider."""
    return engine == "onnxruntime" and config["onnxruntime"]["provider"] == "tensorrt"


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
