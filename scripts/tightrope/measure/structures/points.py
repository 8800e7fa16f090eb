"""Structures whose latency is measured, and that of all others by interpolation."""

from collections.abc import Mapping

import numpy as np

from tightrope.model.structures import (
    Costs,
    Structure,
    Table,
    some_widths,
    width_step,
    widths_up_to,
)

# seconds of a call over those of the parent's
Ratios = Mapping[Structure, float]
# a stage is measured in the middle too where it has more blocks than this
FEW_BLOCKS = 4
# widths are measured at these parts of the present one, and at the smallest
TIMED_PARTS = 2


def points(parent: Structure, *, fewer_heads: bool = False) -> list[Structure]:
    """Return the structures to measure, the parent first: one stage at a time is shortened.

    Depths are one block, half and all; widths the smallest, half and all; and with `fewer_heads`,
    at the parent's depth and width, attention heads one, half and all.
    """
    found = [parent]
    for width in widths_to_measure(parent):
        for stage, blocks in enumerate(parent.depths):
            middle = [(blocks + 1) // 2] if blocks > FEW_BLOCKS else []
            for depth in (1, *middle, blocks):
                depths = (*parent.depths[:stage], depth, *parent.depths[stage + 1 :])
                found.append(Structure(depths, width, parent.heads))
    if fewer_heads and parent.heads is not None:
        fewer = some_widths(parent.heads, TIMED_PARTS, 1)
        found += [Structure(parent.depths, parent.width, heads) for heads in fewer]
    return list(dict.fromkeys(found))


def widths_to_measure(parent: Structure) -> list[int | None]:
    """Return some widths, or [None] of a model without widths."""
    if parent.width is None:
        return [None]
    return [*some_widths(parent.width, TIMED_PARTS, step_of(parent))]


def step_of(parent: Structure) -> int:
    """Return what widths are multiples of."""
    return width_step(len(parent.depths), parent.width)


def table_of(ratios: Ratios, parent: Structure) -> Table:
    """Return the costs of all structures, as shares of the parent's seconds per call.

    Linear between the measured depths, widths and heads; stages add up, and so do the heads: fewer
    of them save the same in each layer, whatever its width.
    """
    saved = saved_by_heads(ratios, parent)
    return {
        (width, heads): less(costs, share)
        for width, costs in costs_by_width(ratios, parent).items()
        for heads, share in saved.items()
    }


def saved_by_heads(ratios: Ratios, parent: Structure) -> dict[int | None, float]:
    """Return the share of the parent's time that each number of heads saves in all its layers.

    From the fewest heads that were measured.
    """
    if parent.heads is None:
        return {None: 0.0}
    known = sorted(
        (one.heads, 1 - ratio)
        for one, ratio in ratios.items()
        if one.heads is not None and one._replace(heads=parent.heads) == parent
    )
    heads, shares = zip(*known, strict=True)
    return {one: float(np.interp(one, heads, shares)) for one in range(heads[0], parent.heads + 1)}


def less(costs: Costs, share: float) -> Costs:
    """Return costs that are less by a share of the parent's, in proportion to the blocks."""
    blocks = [
        [cost - share * depth / len(own) for depth, cost in enumerate(own, start=1)]
        for own in costs.blocks
    ]
    return Costs(costs.rest, blocks)


def costs_by_width(ratios: Ratios, parent: Structure) -> dict[int | None, Costs]:
    """Return the costs of all widths with the heads of the parent."""
    widths = widths_to_measure(parent)
    rows = np.stack([costs_at(ratios, parent, width) for width in widths])
    if parent.width is None:
        return {None: split(rows[0], parent)}
    known = [float(width) for width in widths if width is not None]
    return {
        width: split(np.array([np.interp(float(width), known, row) for row in rows.T]), parent)
        for width in widths_up_to(parent.width, step_of(parent))
        if width is not None
    }


def costs_at(ratios: Ratios, parent: Structure, width: int | None) -> np.ndarray:
    """Return the ratio of each depth of each stage at a measured width, the stages in a row."""
    found: list[np.ndarray] = []
    for stage, blocks in enumerate(parent.depths):
        others = [*parent.depths[:stage], *parent.depths[stage + 1 :]]
        known = sorted(
            (one.depths[stage], ratio)
            for one, ratio in ratios.items()
            if (one.width, one.heads) == (width, parent.heads)
            and [*one.depths[:stage], *one.depths[stage + 1 :]] == others
        )
        depths, values = zip(*known, strict=True)
        found.append(np.interp(np.arange(1, blocks + 1), depths, values))
    return np.concatenate(found)


def split(row: np.ndarray, parent: Structure) -> Costs:
    """Return a row of `costs_at` as costs: the rest is the ratio with all blocks."""
    whole = float(row[-1])
    ends = np.cumsum(parent.depths)
    stages = np.split(row - whole, ends[:-1])
    return Costs(whole, [[float(value) for value in stage] for stage in stages])
