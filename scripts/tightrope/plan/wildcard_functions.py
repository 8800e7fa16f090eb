"""Functions of a job's wildcards, as rules take them for inputs, params and resources."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any


def of_wildcards(function: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """Return the function with its first arguments bound, so that the wildcards are left.

    Snakemake asks for the signature of a function three times per param and job, which takes most
    of the time of a partial: here it is known.
    """
    bound = partial(function, *arguments)
    bound.__signature__ = inspect.signature(bound)  # type: ignore[attr-defined]
    return bound


def of_model(config: dict[str, Any], key: str, wildcards: Any) -> Any:
    """Return the value of a key of the model of the wildcards.

    Not Snakemake's `lookup`, which walks the whole configuration for each job.
    """
    return config["models"][wildcards.model][key]
