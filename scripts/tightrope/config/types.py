"""What values of the configuration may be: numbers, names, lists and sections.

A key is a field of a Section, with its default; the string below it says what it does. `make
schema` writes docs/configuration.md and config/schemas/config.schema.yaml of them.
"""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

UNIQUE = Meta(extra_json_schema={"uniqueItems": True})
# distinct values, of which there is one at least
DISTINCT = Meta(min_length=1, extra_json_schema={"uniqueItems": True})
Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Points = Annotated[float, Meta(ge=0, le=100)]
Count = Annotated[int, Meta(ge=1)]
Counts = Annotated[tuple[Count, ...], DISTINCT]
Size = Annotated[int, Meta(ge=1, le=1_000_000)]
Sizes = Annotated[tuple[Size, ...], DISTINCT]
Tokens = Annotated[int, Meta(ge=2, le=1_000_000)]
Pixels = Annotated[int, Meta(ge=1, le=100_000)]
Seed = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Word = Annotated[str, Meta(min_length=1)]


def one_of(*values: str | int | None) -> Meta:
    """Allow these values alone, which an error lists in this order."""
    return Meta(extra_json_schema={"enum": values})


def named(pattern: str, form: str) -> Meta:
    """Allow names of this pattern, which an error describes as `form`, as keys of a dictionary."""
    return Meta(extra_json_schema={"propertyNames": {"title": form, "pattern": pattern}})


class Section(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Keys with their defaults; one that is UNSET by default is left out."""


class Shape(Section, frozen=True):
    """Sizes of an input: of texts batch and sequence, of images batch, height and width."""

    batch: Size
    """Examples of a call."""
    sequence: Tokens | UnsetType = UNSET
    """Tokens of texts, padding included."""
    tokens: Tokens | UnsetType = UNSET
    """How many tokens of each text are no padding, all without this key."""
    height: Pixels | UnsetType = UNSET
    width: Pixels | UnsetType = UNSET
    """Of images, as the model's image processor makes them."""
