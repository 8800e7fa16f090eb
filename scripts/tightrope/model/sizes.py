"""Number of weights of the smaller structures of a model."""

from typing import Any

from tightrope.model.blocks import feed_forward_of, has_layers, stages_of, width_of
from tightrope.model.pruning import parameters
from tightrope.model.structures import Costs, Table, widths_up_to


def parameter_table(model: Any) -> Table:
    """Return the number of weights of each structure as costs, see `structures.Costs`."""
    stages, width = stages_of(model), width_of(model)
    sizes = [parameters(blocks[0]) for blocks in stages]
    rest = parameters(model) - sum(
        size * len(blocks) for size, blocks in zip(sizes, stages, strict=True)
    )
    neuron = weights_per_neuron(model)
    table: Table = {}
    for one in widths_up_to(width):
        removed = 0 if width is None or one is None else neuron * (width - one)
        table[one] = Costs(
            float(rest),
            [
                [float(depth * (size - removed)) for depth in range(1, len(blocks) + 1)]
                for size, blocks in zip(sizes, stages, strict=True)
            ],
        )
    return table


def weights_per_neuron(model: Any) -> int:
    """Return the weights of a neuron of a feed-forward layer, 0 of a model without widths."""
    if not has_layers(model):
        return 0
    into, out = feed_forward_of(stages_of(model)[0][0])
    return into.in_features + 1 + out.out_features
