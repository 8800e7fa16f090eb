"""The order of a model's outputs where the configuration names them, by the key `labels`."""

from collections.abc import Sequence

from tightrope.errors import TightropeError


def require_names(source: str, names: Sequence[str], outputs: int) -> None:
    """Raise TightropeError unless `names`, the key `labels`, name that many outputs, each once."""
    twice = [name for number, name in enumerate(names) if name in names[:number]]
    if twice:
        raise TightropeError(f"{source}: labels: {twice[0]!r} is listed twice; list each name once")
    if len(names) != outputs:
        raise TightropeError(
            f"{source}: has {outputs} outputs, labels lists {len(names)} names; list one name for "
            "each output, in the order of the outputs"
        )


def output_order(source: str, names: Sequence[str], labels: Sequence[str]) -> list[int]:
    """Return for each of the data's `labels` the index of the output of that name.

    Raises TightropeError naming the labels that are missing where `names` are not these labels.
    """
    missing = [label for label in labels if label not in names]
    unknown = [name for name in names if name not in labels]
    if missing or unknown:
        reasons = [
            f"{words} {', '.join(map(repr, wrong[:5]))}{', ...' if len(wrong) > 5 else ''}"
            for words, wrong in (("lacks", missing), ("has", unknown))
            if wrong
        ]
        raise TightropeError(
            f"{source}: labels {' and '.join(reasons)}, unlike the labels of the data; use the "
            "names of the data"
        )
    return [list(names).index(label) for label in labels]
