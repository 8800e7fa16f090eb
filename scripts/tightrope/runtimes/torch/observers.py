"""Observers that PT2E quantization puts into an exported graph, and the ranges that they hold."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tightrope.errors import TightropeError

RangeOf = Callable[[np.ndarray], list[float] | None]


def set_ranges(observed: torch.fx.GraphModule, range_of: RangeOf) -> None:
    """Give the observers of what linear layers and convolutions read ranges of other origin.

    `range_of` returns [low, high] for the weights [outputs, ...] of an operator, or None where the
    observed range is to stay. Raises TightropeError where it does so for all.
    """
    observers: dict[Any, Any] = dict(observed.named_modules())
    constants, found = observed.state_dict(), 0
    for node in observed.graph.nodes:
        observer, weights = [*observed_inputs(node), None, None][:2]
        if observer is None or weights is None or weights.args[0].op != "get_attr":
            continue
        pair = range_of(constants[weights.args[0].target].numpy())
        if pair is not None:
            observers[observer.target].min_val.fill_(pair[0])
            observers[observer.target].max_val.fill_(pair[1])
            found += 1
    if not found:
        raise TightropeError("no operator has the weights of a module with a learnt range")


def observed_inputs(node: torch.fx.Node) -> list[Any]:
    """Return the observers whose results an operator reads, in order."""
    if node.op != "call_function":
        return []
    return [one for one in node.all_input_nodes if one.op == "call_module"]
