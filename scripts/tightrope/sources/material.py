"""What a data source hands over: labelled texts, not yet split."""

from typing import NamedTuple

Row = tuple[str, int]


class Material(NamedTuple):
    """Texts with their labels as indices into `labels`.

    `evaluation` is None where the source is one pool that has yet to be split; `revision` is
    the exact version of a remote source, `left_out` the number of its rows without text or label.
    """

    labels: list[str]
    train: list[Row]
    evaluation: list[Row] | None = None
    revision: str | None = None
    left_out: int = 0
