"""Checks of a configuration before its schema: that it is finite, and its keys are words."""

import math
from collections.abc import Iterable
from typing import Any

from tightrope.errors import ConfigError

# of a configuration: its levels, its values, and their sizes
MOST_LEVELS, MOST_VALUES, LARGEST = 16, 1_000_000, 10**13


def check_extent(config: dict[str, Any]) -> None:
    """Raise ConfigError for a configuration with more values or levels than any sensible one.

    Aliases of YAML can repeat a value any number of times, and inside itself.
    """
    level: list[Any] = [config]
    values = 0
    for _ in range(MOST_LEVELS):
        level = [one for value in level for one in parts_of(value)]
        values += len(level)
        if values > MOST_VALUES:
            raise ConfigError(
                f"config: more than {MOST_VALUES:,} values; are there aliases of aliases in it?"
            )
        if not level:
            return
    raise ConfigError(
        f"config: more than {MOST_LEVELS} levels; is there an alias within its own value?"
    )


def parts_of(value: Any) -> Iterable[Any]:
    """Return what a list or an object holds, of other values nothing."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def check_words_and_numbers(value: Any, place: str = "") -> None:
    """Raise ConfigError for a key that is no string and for a number that is not finite."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"config: {place} = {value}: must be a finite number")
    if isinstance(value, int | float) and abs(value) > LARGEST:
        raise ConfigError(f"config: {place} = {value:.3g}: larger than {LARGEST:.0e}; lower it")
    if isinstance(value, list):
        for number, item in enumerate(value, start=1):
            check_words_and_numbers(item, f"{place}{entry(number)}")
    if isinstance(value, dict):
        if wrong := [key for key in value if not isinstance(key, str)]:
            name = f"{place}.{wrong[0]}" if place else wrong[0]
            raise ConfigError(f"config: {name}: a key must be a word; put it in quotes")
        for key, item in value.items():
            check_words_and_numbers(item, f"{place}.{key}" if place else key)


def entry(number: int) -> str:
    """Format the place of an entry of a list, counted from 1."""
    return f" (entry {number})"
