"""How much an encoder has to compute for one call."""

from typing import Any


def operations(config: dict[str, Any], batch: int, sequence: int, one_query: bool) -> float:
    """Multiplications and additions of the matrix products of a call.

    A layer has four projections d x d, two of its feed-forward d x f, and two products of
    attention; what is done once for a text (pooling, classes) is left out. With `one_query` the
    last layer is computed for one token of each text: keys and values are projected once per head.
    """
    width = config.get("hidden_size") or config["dim"]
    inner = config.get("intermediate_size") or config["hidden_dim"]
    heads = config.get("num_attention_heads") or config["n_heads"]
    layers = config.get("num_hidden_layers") or config["n_layers"]
    both = 2 * 2 * width**2
    rest = 2 * (2 * width**2 + 2 * width * inner) + 2 * 2 * sequence * width
    whole = (layers - 1) * (both + rest) * sequence
    # scores and mixtures of each head span the channels of all heads
    last = both * heads + rest + 2 * 2 * sequence * width * (heads - 1)
    return float(batch * (whole + (last if one_query else (both + rest) * sequence)))
