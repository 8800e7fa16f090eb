"""A model paired with its training examples, and how examples become batches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
from tokenizers import Tokenizer

from tightrope.inputs.arrays import Arrays, stack
from tightrope.inputs.encode import Example
from tightrope.inputs.texts import Truncation, text_arrays, truncated
from tightrope.training.objective import LABELS
from tightrope.training.teaching import Teaching

Augment = Callable[[Arrays, np.random.Generator], Arrays]


@dataclass(frozen=True)
class Subject:
    """A model and its training examples.

    `rows` are the arrays of one example each and may be created on access; `labels` are int64
    [rows]; `unit` names a row, in the plural; `lengths` are token counts, None if all rows have one
    shape. `stack` builds the inputs of a batch, `prepare(model, device)` sets up the layers for
    training, `augment` changes a row at random each time it is drawn, `truncation` is how many
    texts were cut, None for images. `teaching` is what a teacher says of the rows, if there is one.
    """

    model: Any
    rows: Sequence[Arrays]
    labels: np.ndarray
    unit: str
    lengths: Sequence[int] | None
    stack: Callable[[list[Arrays]], Arrays]
    prepare: Callable[[Any, str], None]
    augment: Augment | None = None
    truncation: Truncation | None = None
    teaching: Teaching | None = None

    def part(self, indices: Sequence[int]) -> "Subject":
        """Return a copy restricted to these rows."""
        lengths = None if self.lengths is None else [self.lengths[index] for index in indices]
        teaching = None if self.teaching is None else self.teaching.part(indices)
        return replace(
            self,
            rows=SelectedRows(self.rows, indices),
            labels=self.labels[list(indices)],
            lengths=lengths,
            teaching=teaching,
        )

    def batch(
        self, indices: Sequence[int], generator: np.random.Generator | None = None
    ) -> tuple[Arrays, Arrays]:
        """Return inputs and targets of these rows, the inputs augmented with `generator`.

        Targets are `labels`, int64 [batch], and what the `teaching` has of them.
        """
        rows = [self.rows[index] for index in indices]
        if self.augment is not None and generator is not None:
            rows = [self.augment(row, generator) for row in rows]
        targets = {} if self.teaching is None else self.teaching.batch(indices)
        return self.stack(rows), {LABELS: self.labels[list(indices)], **targets}

    def shape(self, indices: Sequence[int]) -> tuple[int, ...]:
        """Return a key that identifies the shape of a batch of these rows."""
        if self.lengths is None:
            return (len(indices),)
        return len(indices), max(self.lengths[index] for index in indices)


class SelectedRows(Sequence[Arrays]):
    """Selected rows of a sequence, each created on access."""

    def __init__(self, rows: Sequence[Arrays], indices: Sequence[int]) -> None:
        """Select rows of `rows`, in the order of `indices`."""
        self.rows, self.indices = rows, indices

    def __len__(self) -> int:
        return len(self.indices)

    @overload
    def __getitem__(self, index: int) -> Arrays: ...
    @overload
    def __getitem__(self, index: slice) -> "SelectedRows": ...
    def __getitem__(self, index: int | slice) -> "Arrays | SelectedRows":
        """Return the row at an index, or the rows of a slice."""
        if isinstance(index, slice):
            return SelectedRows(self.rows, self.indices[index])
        return self.rows[self.indices[index]]


def text_subject(
    model: Any, tokenizer: Tokenizer, examples: list[Example], *, sequence: int
) -> Subject:
    """Return labelled texts truncated to `sequence` tokens; batches pad to their longest text."""
    tokenizer.no_padding()
    tokenizer.enable_truncation(sequence)
    encoded = tokenizer.encode_batch([example["text"] for example in examples])
    rows = [text_arrays(item.ids) for item in encoded]
    cut: Truncation = {
        "texts": len(rows),
        "truncated": truncated(encoded),
        "max_sequence": sequence,
    }
    return Subject(
        model=model,
        rows=rows,
        labels=np.array([example["label"] for example in examples]),
        unit="texts",
        lengths=[len(row["input_ids"]) for row in rows],
        stack=stack,
        prepare=prepare_text_layers,
        truncation=cut,
    )


def prepare_text_layers(model: Any, device: str) -> None:
    """Set up the layers for a short training run; the weights stay as they are.

    Dropout is off: in a single epoch it cost 2 points of accuracy, and time. On a CPU attention is
    eager, because with the fused kernel a step takes 1.5 times as long.
    """
    model.eval()
    if device == "cpu":
        model.set_attn_implementation("eager")


def image_subject(
    model: Any, rows: Sequence[Arrays], labels: np.ndarray, *, augment: Augment | None = None
) -> Subject:
    """Labelled images: each row has `pixel_values`, float32 [3, height, width], all of one size."""
    return Subject(
        model=model,
        rows=rows,
        labels=np.asarray(labels, dtype=np.int64),
        unit="images",
        lengths=None,
        stack=stack,
        prepare=lambda trained, _: trained.train(),
        augment=augment,
    )
