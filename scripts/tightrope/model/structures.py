"""Choose how many blocks and neurons of a model to keep within a cost, by dynamic programming.

As in ZipLM (Kurtic et al. 2023, arXiv 2302.04089) costs come from a table and the lost importance
is least, but the width is the same in all layers, because config.json knows one only.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

# widths are multiples of it
WIDTH_STEP = 64


class Importance(NamedTuple):
    """Of a block: of each neuron of its feed-forward layer, and of all its other units together.

    Without neurons where config.json has no size for them.
    """

    neurons: list[float]
    other: float

    def kept(self, width: int | None) -> float:
        """Return the importance that is left with the `width` most important neurons."""
        return self.other + sum(sorted(self.neurons, reverse=True)[:width])


Stages = Sequence[Sequence[Importance]]


class Structure(NamedTuple):
    """How many blocks each stage has, and neurons each feed-forward layer, None if not known."""

    depths: tuple[int, ...]
    width: int | None

    def document(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"depths": list(self.depths), "width": self.width}

    def __str__(self) -> str:
        blocks = " + ".join(map(str, self.depths))
        return f"{blocks} blocks" + ("" if self.width is None else f" of {self.width} neurons")


class Costs(NamedTuple):
    """Costs of the structures of one width: the `rest`, and so many blocks of each stage.

    `blocks[stage][depth - 1]` is the cost of `depth` blocks.
    """

    rest: float
    blocks: list[list[float]]

    def of(self, depths: Sequence[int]) -> float:
        """Return the cost of a structure."""
        own = (costs[depth - 1] for costs, depth in zip(self.blocks, depths, strict=True))
        return self.rest + sum(own)


# by width
Table = dict[int | None, Costs]


class Partial(NamedTuple):
    """Blocks kept of the first stages, what they cost and their importance."""

    cost: float
    kept: float
    depths: tuple[int, ...]


def widths_up_to(width: int | None) -> list[int | None]:
    """Return the widths to choose from: multiples of WIDTH_STEP and the present one."""
    return [None] if width is None else [*range(WIDTH_STEP, width, WIDTH_STEP), width]


def choose(stages: Stages, table: Table, limit: float) -> tuple[Structure, float]:
    """Return the structure of the greatest kept importance that costs at most `limit`, its cost.

    Where none does, the cheapest structure. Each stage keeps a block at least.
    """
    found = [
        (one, width)
        for width, costs in table.items()
        for one in fronts([[block.kept(width) for block in blocks] for blocks in stages], costs)
    ]
    within = [pair for pair in found if pair[0].cost <= limit]
    best, width = (
        max(within, key=lambda pair: (pair[0].kept, -pair[0].cost))
        if within
        else min(found, key=lambda pair: (pair[0].cost, -pair[0].kept))
    )
    return Structure(best.depths, width), best.cost


def fronts(importances: Sequence[Sequence[float]], costs: Costs) -> list[Partial]:
    """Return the structures of one width that no cheaper structure beats, in order of cost.

    Stage by stage, each with its most important blocks; a partial structure that costs more and
    keeps less than another one goes (Nemhauser and Ullmann 1969, for the knapsack problem).
    """
    front = [Partial(costs.rest, 0.0, ())]
    for blocks, own in zip(importances, costs.blocks, strict=True):
        largest = sorted(blocks, reverse=True)
        extended = [
            Partial(
                one.cost + own[depth - 1], one.kept + sum(largest[:depth]), (*one.depths, depth)
            )
            for one in front
            for depth in range(1, len(blocks) + 1)
        ]
        front = undominated(extended)
    return front


def undominated(found: list[Partial]) -> list[Partial]:
    """Return those that keep more than every cheaper one."""
    kept: list[Partial] = []
    for one in sorted(found, key=lambda one: (one.cost, -one.kept)):
        if not kept or one.kept > kept[-1].kept:
            kept.append(one)
    return kept


def kept_parts(stages: Stages, structure: Structure) -> dict[str, Any]:
    """Return which blocks and neurons of a structure are kept, as `pruning.prune` takes them."""
    blocks = [
        largest([block.kept(structure.width) for block in stage], depth)
        for stage, depth in zip(stages, structure.depths, strict=True)
    ]
    if structure.width is None:
        return {"blocks": blocks}
    return {
        "layers": blocks[0],
        "intermediate": structure.width,
        "neurons": [largest(stages[0][layer].neurons, structure.width) for layer in blocks[0]],
    }


def largest(values: Sequence[float], count: int) -> list[int]:
    """Return the indices of so many of the largest values, in ascending order."""
    order = sorted(range(len(values)), key=lambda index: (-values[index], index))
    return sorted(order[:count])
