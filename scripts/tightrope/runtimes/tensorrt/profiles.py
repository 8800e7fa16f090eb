"""TensorRT's optimization profiles: the shapes that an engine takes and those it is tuned for."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from tightrope.errors import ConfigError
from tightrope.plan.shapes import free_sizes, is_of_images
from tightrope.runtimes.buckets import PLURALS, in_words
from tightrope.signature import BATCH, SEQUENCE
from tightrope.variants import devices_of, parse

ENGINE = "tensorrt"
# of a request: [batch, sequence] of texts, [batch] of images
Shape = tuple[int, ...]


class Profile(NamedTuple):
    """The smallest and the largest request of a profile, and the one it is tuned for."""

    min: Shape
    opt: Shape
    max: Shape

    @classmethod
    def of(cls, shapes: Sequence[Sequence[int]]) -> "Profile":
        """The profile of three shapes, as a JSON document gives it back."""
        smallest, usual, largest = map(tuple, shapes)
        return cls(smallest, usual, largest)

    def holds(self, *request: int) -> bool:
        """Whether a request of these sizes lies in it."""
        sides = zip(self.min, request, self.max, strict=True)
        return all(least <= size <= most for least, size, most in sides)

    def ranges(self) -> str:
        """What it takes, in words."""
        sides = zip(PLURALS.values(), self.min, self.max, strict=False)
        return " and ".join(f"{name} {least} to {most}" for name, least, most in sides)


def profiles_of(config: dict[str, Any], model: str) -> list[Profile]:
    """`tensorrt.profiles` for one model.

    `auto`: one for each of `shapes`, tuned for it. Each takes everything that is asked of the
    model, so that a request may go to whichever is tuned for the most similar one.
    """
    axes = [axis for axis in PLURALS if axis == BATCH or not is_of_images(config, model)]
    chosen = config[ENGINE]["profiles"]
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


def is_loaded(config: dict[str, Any]) -> bool:
    """Whether traffic is measured for a variant of TensorRT."""
    return any(parse(name).engine == ENGINE for name in config["traffic"]["variants"])


def choose(profiles: Sequence[Profile], *request: int) -> int:
    """Index of the profile for a request of these sizes.

    Of those that hold it, the first of those tuned for the nearest shape. How far a shape is off is
    counted in doublings, of rows and of tokens together: kernels are picked by how many times they
    fill their tiles and the GPU, so 1 row is as far from 2 as 64 are from 128. Raises ValueError
    with the ranges where no profile holds it.
    """
    holding = [index for index, one in enumerate(profiles) if one.holds(*request)]
    if not holding:
        raise ValueError(
            f"a request of {in_words(request)}: this engine was built for {all_ranges(profiles)} "
            "(`tensorrt.profiles`)"
        )
    return min(holding, key=lambda index: doublings(profiles[index].opt, request))


def doublings(one: Shape, other: Shape) -> float:
    """How often rows and tokens must be doubled or halved to get from one shape to the other."""
    return sum(abs(math.log2(here / there)) for here, there in zip(one, other, strict=True))


def all_ranges(profiles: Sequence[Profile]) -> str:
    """What the profiles take, in words, each range once."""
    return ", or ".join(dict.fromkeys(one.ranges() for one in profiles))


def check_profiles(config: dict[str, Any]) -> None:
    """Profiles must be in order, and what is measured must lie within them."""
    if not config["engines"].get(ENGINE) or "cuda" not in devices_of(config):
        return
    if config[ENGINE]["profiles"] != "auto":
        check_order(config[ENGINE]["profiles"])
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
    """Raise ConfigError unless the sizes of each profile are min <= opt <= max, from 1 on."""
    for number, profile in enumerate(profiles):
        for size in profile:
            if profile[size] != sorted(profile[size]) or profile[size][0] < 1:
                raise ConfigError(
                    f"config: tensorrt.profiles[{number}].{size} = {profile[size]}: not "
                    "1 <= min <= opt <= max; write the three in ascending order"
                )


def outside(place: str, profiles: list[Profile]) -> ConfigError:
    """The error for a size, by the place of its key, that lies in none of the profiles."""
    return ConfigError(
        f"config: {place}: in none of tensorrt.profiles, which are for {all_ranges(profiles)}; "
        "widen one of them, or say profiles: auto"
    )
