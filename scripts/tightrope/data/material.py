"""What a data source hands over: labelled texts or images, not yet split."""

from typing import Any, NamedTuple

# a text or a StoredImage, and the index of its label
Row = tuple[Any, int]
# the same with the label as the source has it, int or str
Labelled = tuple[Any, Any]


class Material(NamedTuple):
    """Texts or images with their labels as indices into `labels`.

    `evaluation` is None where the source is one pool that has yet to be split; `revision` is
    the exact version of a remote source, `left_out` the number of its rows without text, image or
    label, and of files that are no images by their names.
    """

    labels: list[str]
    train: list[Row]
    evaluation: list[Row] | None = None
    revision: str | None = None
    left_out: int = 0


def labelled(train: list[Labelled], evaluation: list[Labelled] | None) -> Material:
    """Material whose labels are numbered in the order of their values."""
    values = {label for _, label in train + (evaluation or [])}
    ordered = sorted(values, key=lambda value: (isinstance(value, str), value))
    index = {value: number for number, value in enumerate(ordered)}

    def rows(part: list[Labelled]) -> list[Row]:
        return [(content, index[label]) for content, label in part]

    return Material(
        labels=[str(value) for value in ordered],
        train=rows(train),
        evaluation=None if evaluation is None else rows(evaluation),
    )
