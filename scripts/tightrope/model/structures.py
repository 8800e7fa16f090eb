"""Choose how many blocks and neurons of a model to keep within a cost, of all that can be.

As in ZipLM (Kurtic et al. 2023, arXiv 2302.04089) costs come from a table and the lost importance
is least, but the width is the same in all layers, because config.json knows one only. The blocks
of a model with stages keep the same share of their neurons; its width is that of the first stage.
"""

from collections.abc import Sequence
from itertools import accumulate, product
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

# widths are multiples of it, or of FINE_STEP in stages that have less than FEW_STEPS of them
WIDTH_STEP, FINE_STEP, FEW_STEPS = 64, 16, 4


class Importance(NamedTuple):
    """Of a block: of each neuron of its feed-forward layer, for their order, and of it as a whole.

    `block` is the loss gained without it. Without neurons where it has no known feed-forward layer,
    and without `heads` where it has no known attention.
    """

    neurons: list[float]
    block: float
    heads: Sequence[float] = ()


class Judged(NamedTuple):
    """Importance of the blocks of each stage, and the loss gained by narrowing all layers.

    `narrowing` is by width, in ascending order, and empty without widths; `fewer_heads` is the same
    by the number of attention heads.
    """

    stages: Sequence[Sequence[Importance]]
    narrowing: dict[int, float]
    fewer_heads: dict[int, float] | None = None

    def values(self, width: int | None, heads: int | None = None) -> list[list[float]]:
        """Return the loss that each block saves by being kept at a width with so many heads.

        What fewer neurons and heads cost is interpolated between the measured numbers, and is borne
        by the layers in proportion to the importance of what they lose.
        """
        values = [[block.block for block in blocks] for blocks in self.stages]
        if width is not None:
            lost = [
                [lost_beyond(block.neurons, self.width_in(stage, width)) for block in blocks]
                for stage, blocks in enumerate(self.stages)
            ]
            values = borne(values, lost, self.narrowing, width)
        if heads is not None and self.fewer_heads:
            lost = [[lost_beyond(one.heads, heads) for one in blocks] for blocks in self.stages]
            values = borne(values, lost, self.fewer_heads, heads)
        return values

    def kept(self, structure: "Structure") -> float:
        """Return the loss that a structure saves with its most important blocks."""
        kept = zip(self.values(structure.width, structure.heads), structure.depths, strict=True)
        return sum(sum(sorted(values, reverse=True)[:depth]) for values, depth in kept)

    def width_in(self, stage: int, width: int) -> int:
        """Return the neurons of a block of a stage where the first stage has `width`."""
        whole, first = (len(self.stages[one][0].neurons) for one in (stage, 0))
        return in_proportion(whole, width, first)


def lost_beyond(values: Sequence[float], count: int) -> float:
    """Return the importance of all but so many of the most important neurons or heads."""
    return sum(sorted(values, reverse=True)[count:])


def borne(
    values: list[list[float]], lost: list[list[float]], costs: dict[int, float], size: int
) -> list[list[float]]:
    """Return the values less the cost of a size, which is borne in proportion to what is lost.

    The cost is linear between the sizes for which it was measured.
    """
    total, cost = sum(map(sum, lost)), float(np.interp(size, [*costs], [*costs.values()]))
    part = cost / total if total else 0.0
    return [
        [value - part * share for value, share in zip(own, shares, strict=True)]
        for own, shares in zip(values, lost, strict=True)
    ]


class Structure(Struct, frozen=True, omit_defaults=True):
    """How many blocks each stage has, and neurons each feed-forward layer, None if not known.

    The neurons are those of the first stage, and in the others in proportion to their own. `heads`
    are those of each layer's attention, None if not known.
    """

    depths: tuple[int, ...]
    width: int | None
    heads: int | None = None

    def __str__(self) -> str:
        blocks = " + ".join(map(str, self.depths))
        if self.width is None:
            return f"{blocks} blocks"
        first = " in the first stage" if len(self.depths) > 1 else ""
        heads = "" if self.heads is None else f" and {self.heads} heads"
        return f"{blocks} blocks of {self.width} neurons{first}{heads}"


class Costs(NamedTuple):
    """Costs of the structures of one width and number of heads.

    That is the `rest`, and so many blocks of each stage: `blocks[stage][depth - 1]` is the cost of
    `depth` blocks.
    """

    rest: float
    blocks: list[list[float]]

    def of(self, depths: Sequence[int]) -> float:
        """Return the cost of a structure."""
        own = (costs[depth - 1] for costs, depth in zip(self.blocks, depths, strict=True))
        return sum(own, self.rest)


# by width and number of heads
Table = dict[tuple[int | None, int | None], Costs]


def width_step(stages: int, width: int | None) -> int:
    """Return what the widths of a model with so many stages are multiples of."""
    fine = stages > 1 and width is not None and width < FEW_STEPS * WIDTH_STEP
    return FINE_STEP if fine else WIDTH_STEP


def in_proportion(whole: int, width: int, first: int) -> int:
    """Return the part of `whole` neurons that `width` is of the `first` stage's, at least one."""
    return max(1, round(whole * width / first))


def some_widths(width: int, parts: int, step: int = WIDTH_STEP) -> list[int]:
    """Return the smallest width, the present one, and about its multiples of 1 / `parts`."""
    between = [max(step, round(width * part / parts / step) * step) for part in range(1, parts)]
    return sorted({min(one, width) for one in (step, *between, width)})


def widths_up_to(width: int | None, step: int = WIDTH_STEP) -> list[int | None]:
    """Return the widths to choose from: multiples of `step` and the present one."""
    return [None] if width is None else [*range(step, width, step), width]


def with_all_heads(table: Table) -> Table:
    """Return the structures of a table that keep all attention heads."""
    most = max((heads for _, heads in table if heads is not None), default=None)
    return {sizes: costs for sizes, costs in table.items() if sizes[1] == most}


def choose(judged: Judged, table: Table, limit: float) -> tuple[Structure, float]:
    """Return the structure of the least lost importance that costs at most `limit`, and its cost.

    Where none does, the cheapest structure. Each stage keeps a block at least.
    """
    found: list[tuple[float, float, tuple[int, ...], tuple[int | None, int | None]]] = []
    for sizes, costs in table.items():
        # of each stage what so many of its most important blocks keep
        kept = [[*accumulate(sorted(own, reverse=True))] for own in judged.values(*sizes)]
        for depths in product(*(range(1, len(stage) + 1) for stage in kept)):
            importance = sum(stage[depth - 1] for stage, depth in zip(kept, depths, strict=True))
            found.append((importance, costs.of(depths), depths, sizes))
    within = [one for one in found if one[1] <= limit]
    if within:
        _, cost, depths, sizes = max(within, key=lambda one: (one[0], -one[1]))
    else:
        _, cost, depths, sizes = min(found, key=lambda one: (one[1], -one[0]))
    return Structure(depths, *sizes), cost


def kept_parts(judged: Judged, structure: Structure) -> dict[str, Any]:
    """Return which blocks and neurons of a structure are kept, as `pruning.prune` takes them."""
    width, heads = structure.width, structure.heads
    values = judged.values(width, heads)
    blocks = [largest(own, depth) for own, depth in zip(values, structure.depths, strict=True)]
    if width is None:
        return {"blocks": blocks}
    kept: dict[str, Any] = {"layers": blocks[0]} if len(blocks) == 1 else {"blocks": blocks}
    neurons = [
        largest(judged.stages[stage][block].neurons, judged.width_in(stage, width))
        for stage, own in enumerate(blocks)
        for block in own
    ]
    kept |= {"intermediate": width, "neurons": neurons}
    if heads is None:
        return kept
    kept_heads = [largest(judged.stages[0][layer].heads, heads) for layer in blocks[0]]
    return {**kept, "heads": heads, "kept_heads": kept_heads}


def largest(values: Sequence[float], count: int) -> list[int]:
    """Return the indices of so many of the largest values, in ascending order."""
    order = sorted(range(len(values)), key=lambda index: (-values[index], index))
    return sorted(order[:count])
