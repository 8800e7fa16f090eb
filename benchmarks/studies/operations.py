"""How much an encoder has to compute for one call."""

from typing import Any


def operations(config: dict[str, Any], batch: int, sequence: int, rows_read: int) -> float:
    """Multiplications and additions of the matrix products of a call.

    A layer has four projections d x d, two of its feed-forward d x f, and two products of
    attention; what is done once for a text (pooling, classes) is left out. In the last layer an
    engine does all but two projections (keys and values) for `rows_read` tokens of each text.
    """
    width = config.get("hidden_size") or config["dim"]
    inner = config.get("intermediate_size") or config["hidden_dim"]
    layers = config.get("num_hidden_layers") or config["n_layers"]
    both = 2 * 2 * width**2
    rest = 2 * (2 * width**2 + 2 * width * inner) + 2 * 2 * sequence * width
    tokens = (layers - 1) * (both + rest) * sequence + both * sequence + rest * rows_read
    return float(batch * tokens)
