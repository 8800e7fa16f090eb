"""Number of weights of the smaller structures of a model."""

from typing import Any

from tightrope.model.attention_heads import heads_in, heads_of
from tightrope.model.blocks import feed_forward_of, stage_widths, stages_of, width_of
from tightrope.model.pruning import parameters
from tightrope.model.structures import Costs, Table, in_proportion, width_step, widths_up_to


def parameter_table(model: Any) -> Table:
    """Return the number of weights of each structure as costs, see `structures.Costs`."""
    stages, width = stages_of(model), width_of(model)
    sizes = [parameters(blocks[0]) for blocks in stages]
    rest = parameters(model) - sum(
        size * len(blocks) for size, blocks in zip(sizes, stages, strict=True)
    )
    whole = heads_of(model)
    table: Table = {}
    for one in widths_up_to(width, width_step(len(stages), width)):
        for heads in widths_up_to(whole, 1):
            removed = removed_weights(model, one, heads)
            table[one, heads] = Costs(
                float(rest),
                [
                    [float(depth * (size - less)) for depth in range(1, len(blocks) + 1)]
                    for size, less, blocks in zip(sizes, removed, stages, strict=True)
                ],
            )
    return table


def removed_weights(model: Any, width: int | None, heads: int | None) -> list[int]:
    """Return by how many weights a block of each stage is smaller at a width with `heads`."""
    widths, known = stage_widths(model), heads_in(stages_of(model)[0][0])
    if width is None or not widths:
        return [0 for _ in stages_of(model)]
    fewer = 0 if known is None or heads is None else known.number - heads
    of_heads = 0 if known is None else fewer * known.weights
    products = [feed_forward_of(blocks[0]) for blocks in stages_of(model)]
    return [
        (whole - in_proportion(whole, width, widths[0])) * (into.in_features + 1 + out.out_features)
        + of_heads
        for whole, (into, out) in zip(widths, products, strict=True)
    ]
