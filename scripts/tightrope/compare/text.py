"""Words of a comparison, in which what files say is told apart from what the program says."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from tightrope.compare.read import Shape
from tightrope.report.style.numbers import TIMES, milliseconds, points
from tightrope.statistics import Interval


class Quoted(NamedTuple):
    """Text from a file: a name, a reason, an example. Each format escapes it in its own way."""

    text: str


class Words(tuple[str | Quoted, ...]):
    """A line of text of the program's own words and quotations."""

    def __new__(cls, *parts: "str | Quoted") -> "Words":
        """Return the line of these parts."""
        return super().__new__(cls, parts)


class Table(NamedTuple):
    """Rows under a header; a cell is a line."""

    header: Sequence[str]
    rows: Sequence[Sequence[Words]]


class Section(NamedTuple):
    """A part of the comparison: its title, lines of text, and a table, if any.

    `verdicts` are classes of the page's style by the first words of a cell.
    """

    title: str
    lines: Sequence[Words]
    table: Table | None = None


def change_words(time: Interval) -> str:
    """Format a time ratio: 1.05 with the times sign, and its interval."""
    return f"{time.value:.3f}{TIMES} ({time.low:.3f} to {time.high:.3f})"


def points_words(delta: Interval) -> str:
    """Format a change of accuracy in percentage points, with its interval."""
    value, low, high = (points(one) for one in delta)
    return f"{value} ({low} to {high})"


def shape_words(shape: Shape) -> str:
    """Format a shape as its sizes: 1x128, padded texts as `32x128, 64 tokens`."""
    sizes = dict(shape)
    tokens = sizes.pop("tokens", None)
    joined = "x".join(map(str, sizes.values())) or "any shape"
    return joined if tokens is None else f"{joined}, {tokens} tokens"


def time_words(seconds: float | None) -> str:
    """Format seconds in milliseconds."""
    return milliseconds(seconds) or "-"


def value_words(value: Any) -> str:
    """Format a value of a configuration or a host in one line, shortened."""
    if value is None:
        return "none"
    if isinstance(value, list):
        text = " ".join(map(value_words, value)) or "none"
    elif isinstance(value, dict):
        text = ", ".join(f"{name}: {value_words(one)}" for name, one in value.items())
    else:
        text = str(value)
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text)} characters)"
