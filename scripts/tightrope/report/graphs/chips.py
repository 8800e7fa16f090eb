"""Layout of a layer's operators as rows of chips: their widths and positions."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tightrope.report.graphs.names import OTHER
from tightrope.report.graphs.style import CHIP_SIZE, MONO_WIDTH

Run = Mapping[str, Any]
TIMES = "\N{MULTIPLICATION SIGN}"
HEIGHT, GAP, LINE = 20.0, 5.0, 26.0
PADDING, MARK = 7.0, 12.0
# operators that only move, reshape or cast data; their chips have no fill
MOVES = frozenset(
    (
        "Cast",
        "Concat",
        "ConstantOfShape",
        "Expand",
        "Flatten",
        "Gather",
        "GatherElements",
        "GatherND",
        "Identity",
        "Pad",
        "Range",
        "Reshape",
        "Shape",
        "Size",
        "Slice",
        "Split",
        "Squeeze",
        "Tile",
        "Transpose",
        "Unsqueeze",
        "Where",
        "DepthToSpace",
        "SpaceToDepth",
    )
)


class Chip(NamedTuple):
    """Chip of an operator run: left and top edge and width in the diagram's units."""

    x: float
    y: float
    width: float
    text: str
    title: str
    precision: str
    moves: bool
    weighted: bool


def chips(runs: Iterable[Run], *, left: float, top: float, width: float) -> list[Chip]:
    """Lay out the runs in rows from `top` on, none beyond `left + width`."""
    placed: list[Chip] = []
    x, y = left, top
    for run in runs:
        moves = run["precision"] == OTHER or (run["type"] in MOVES and not run["weighted"])
        room = width - 2 * PADDING - (0 if moves else MARK)
        text = shortened(text_of(run), room, CHIP_SIZE * MONO_WIDTH)
        chip_width = len(text) * CHIP_SIZE * MONO_WIDTH + 2 * PADDING + (0 if moves else MARK)
        if x > left and x + chip_width > left + width:
            x, y = left, y + LINE
        placed.append(
            Chip(x, y, chip_width, text, title_of(run), run["precision"], moves, run["weighted"])
        )
        x += chip_width + GAP
    return placed


def text_of(run: Run) -> str:
    """Return the text on the chip."""
    return run["type"] + (f" {TIMES}{run['count']:,}" if run["count"] > 1 else "")


def title_of(run: Run) -> str:
    """Return the tooltip of the chip."""
    modules = list(dict.fromkeys(run["modules"]))
    named = ", ".join(modules[:6]) + (", \N{HORIZONTAL ELLIPSIS}" if len(modules) > 6 else "")
    inside = f"{run['inside']:,} operators inside" if run["inside"] else ""
    kind = "" if run["precision"] == OTHER else run["precision"]
    return " \N{MIDDLE DOT} ".join(filter(None, [text_of(run), kind, named, inside]))


def shortened(text: str, room: float, letter: float) -> str:
    """Cut `text` in the middle to fit into `room`; `letter` is the width of a letter."""
    limit = max(int(room / letter), 3)
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 2
    return f"{text[: limit - 1 - tail]}\N{HORIZONTAL ELLIPSIS}{text[-tail:] if tail else ''}"
