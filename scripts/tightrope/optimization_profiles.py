"""TensorRT's optimization profiles: the shapes that an engine takes and those it is tuned for."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from tightrope.errors import ConfigError
from tightrope.variants import parse

ENGINE = "tensorrt"
SIZES = ("batch", "sequence")


class Shape(NamedTuple):
    """Rows and tokens of a request."""

    batch: int
    sequence: int

    def __str__(self) -> str:
        return f"{self.batch}x{self.sequence}"


class Profile(NamedTuple):
    """The smallest and the largest request of a profile, and the one it is tuned for."""

    min: Shape
    opt: Shape
    max: Shape

    @classmethod
    def of(cls, shapes: Sequence[Sequence[int]]) -> "Profile":
        """The profile of three shapes, as a JSON document gives it back."""
        smallest, usual, largest = shapes
        return cls(Shape(*smallest), Shape(*usual), Shape(*largest))

    def holds(self, batch: int, sequence: int) -> bool:
        """Whether a request of [batch, sequence] lies in it."""
        rows = self.min.batch <= batch <= self.max.batch
        return rows and self.min.sequence <= sequence <= self.max.sequence

    def ranges(self) -> str:
        """What it takes, in words."""
        return (
            f"batches {self.min.batch} to {self.max.batch} and "
            f"sequences {self.min.sequence} to {self.max.sequence}"
        )


def profiles_of(config: dict[str, Any], model: str) -> list[Profile]:
    """`tensorrt.profiles` for one model.

    `auto`: one for each of `shapes`, tuned for it. Each takes everything that is asked of the
    model, so that a request may go to whichever is tuned for the most similar one.
    """
    chosen = config[ENGINE]["profiles"]
    if chosen != "auto":
        return [
            Profile.of(list(zip(*(one[size] for size in SIZES), strict=True))) for one in chosen
        ]
    shapes = [Shape(one["batch"], one["sequence"]) for one in config["shapes"]]
    batches = [one.batch for one in shapes]
    if is_loaded(config):
        batches.append(config["traffic"]["batch"])
    longest = [config["models"][model]["max_sequence"], *(one.sequence for one in shapes)]
    largest = Shape(max(batches), max(longest))
    return [Profile(Shape(1, 1), shape, largest) for shape in shapes]


def is_loaded(config: dict[str, Any]) -> bool:
    """Whether traffic is measured for a variant of TensorRT."""
    return any(parse(name).engine == ENGINE for name in config["traffic"]["variants"])


def choose(profiles: Sequence[Profile], batch: int, sequence: int) -> int:
    """Index of the profile for a request of [batch, sequence].

    Of those that hold it, the first of those tuned for the nearest shape. How far a shape is off is
    counted in doublings, of rows and of tokens together: kernels are picked by how many times they
    fill their tiles and the GPU, so 1 row is as far from 2 as 64 are from 128. Raises ValueError
    with the ranges where no profile holds it.
    """
    holding = [index for index, one in enumerate(profiles) if one.holds(batch, sequence)]
    if not holding:
        raise ValueError(
            f"a request of {batch}x{sequence}: this engine was built for {all_ranges(profiles)} "
            "(`tensorrt.profiles`)"
        )
    return min(holding, key=lambda index: doublings(profiles[index].opt, Shape(batch, sequence)))


def doublings(one: Shape, other: Shape) -> float:
    """How often rows and tokens must be doubled or halved to get from one shape to the other."""
    return sum(abs(math.log2(here / there)) for here, there in zip(one, other, strict=True))


def all_ranges(profiles: Sequence[Profile]) -> str:
    """What the profiles take, in words, each range once."""
    return ", or ".join(dict.fromkeys(one.ranges() for one in profiles))


def check_profiles(config: dict[str, Any]) -> None:
    """Profiles must be in order, and what is measured must lie within them."""
    if not config["engines"].get(ENGINE):
        return
    if config[ENGINE]["profiles"] != "auto":
        check_order(config[ENGINE]["profiles"])
    for name, model in config["models"].items():
        profiles = profiles_of(config, name)
        for shape in (Shape(**one) for one in config["shapes"]):
            if not any(one.holds(*shape) for one in profiles):
                raise outside(f"shapes: {shape}", profiles)
        if model["max_sequence"] > max(one.max.sequence for one in profiles):
            raise outside(f"models.{name}.max_sequence = {model['max_sequence']}", profiles)
        batch = config["traffic"]["batch"]
        if is_loaded(config) and batch > max(one.max.batch for one in profiles):
            raise outside(f"traffic.batch = {batch}", profiles)


def check_order(profiles: list[dict[str, list[int]]]) -> None:
    """Raise ConfigError unless the sizes of each profile are min <= opt <= max, from 1 on."""
    for number, profile in enumerate(profiles):
        for size in SIZES:
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
