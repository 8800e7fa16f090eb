"""A model paired with its training examples, and how examples become batches."""

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Any, TypeVar

import numpy as np
from tokenizers import Tokenizer
from torch.utils.data import Subset

from tightrope.inputs.arrays import Arrays, stack
from tightrope.inputs.encode import Example
from tightrope.inputs.texts import Truncation, require_known, text_arrays, truncated
from tightrope.training.step import LABELS
from tightrope.training.teaching import Teaching

# batches per window that is sorted by length: saves padding, but keeps examples mixed
WINDOW = 32
# fraction of the train split held out for validation if the recipe sets `validate`
VALIDATION_FRACTION = 0.1
# padding on each side before the random crop, as a fraction of the image's side
MARGIN = 1 / 8
Batch = list[int]
Augment = Callable[[Arrays, np.random.Generator], Arrays]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Subject:
    """A model and its training examples.

    `rows` are the arrays of one example each and may be created on access; `labels` are int64
    [rows]; `unit` names a row, in the plural; `lengths` are token counts, None if all rows have one
    shape. `prepare(model, device)` sets up the layers for training, `augment` changes a row at
    random each time it is drawn, `truncation` is how many texts were cut, None for images.
    `teaching` is what a teacher says of the rows, if there is one.
    """

    model: Any
    rows: Sequence[Arrays]
    labels: np.ndarray
    unit: str
    lengths: Sequence[int] | None
    prepare: Callable[[Any, str], None]
    augment: Augment | None = None
    truncation: Truncation | None = None
    teaching: Teaching | None = None

    def part(self, indices: Sequence[int]) -> "Subject":
        """Return a copy restricted to these rows."""
        return replace(
            self,
            rows=Subset(self.rows, indices),  # type: ignore[arg-type]  # a sequence but for slices
            labels=self.labels[list(indices)],
            lengths=None if self.lengths is None else [self.lengths[index] for index in indices],
            teaching=self.teaching and self.teaching.part(indices),
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
        return stack(rows), {LABELS: self.labels[list(indices)], **targets}

    def shape(self, indices: Sequence[int]) -> tuple[int, ...]:
        """Return a key that identifies the shape of a batch of these rows."""
        if self.lengths is None:
            return (len(indices),)
        return len(indices), max(self.lengths[index] for index in indices)


def text_subject(model: Any, tokenizer: Any, examples: list[Example], *, sequence: int) -> Subject:
    """Return labelled texts truncated to `sequence` tokens; batches pad to their longest text.

    `tokenizer` is a fast one of transformers.
    """
    backend: Tokenizer = tokenizer.backend_tokenizer
    backend.no_padding()
    backend.enable_truncation(sequence, direction=tokenizer.truncation_side)
    encoded = backend.encode_batch([example["text"] for example in examples])
    require_known("the tokenizer", encoded, model.config.vocab_size)
    rows = [text_arrays(item.ids) for item in encoded]
    return Subject(
        model=model,
        rows=rows,
        labels=np.array([example["label"] for example in examples]),
        unit="texts",
        lengths=[len(row["input_ids"]) for row in rows],
        prepare=prepare_text_layers,
        truncation=Truncation(texts=len(rows), truncated=truncated(encoded), max_sequence=sequence),
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
        prepare=lambda trained, _: trained.train(),
        augment=augment,
    )


def flip_crop(row: Arrays, generator: np.random.Generator) -> Arrays:
    """Shift the image by up to an eighth of its side, and mirror it with probability 0.5.

    `pixel_values` are float32 [3, height, width], contiguous before and after. Padding is zero, the
    mean of normalized pixels (He et al. 2016, "Deep Residual Learning for Image Recognition", 4.2,
    with 4 of 32 pixels).
    """
    image = row["pixel_values"]
    height, width = image.shape[1:]
    down, right = round(MARGIN * height), round(MARGIN * width)
    padded = np.pad(image, ((0, 0), (down, down), (right, right)))
    top, left = generator.integers(0, 2 * down + 1), generator.integers(0, 2 * right + 1)
    crop = padded[:, top : top + height, left : left + width]
    mirrored = crop[:, :, ::-1] if generator.random() < 0.5 else crop
    return {**row, "pixel_values": np.ascontiguousarray(mirrored)}


# keys are the names in the configuration
AUGMENTATIONS = {"off": None, "flip_crop": flip_crop}


def draw_epochs(
    count: int, lengths: Sequence[int] | None, *, size: int, epochs: float, seed: int
) -> Iterator[list[Batch]]:
    """Yield each epoch's batches of indices of `count` examples; the last epoch may be partial.

    With `lengths`, batches hold examples of similar length, in shuffled order; without, examples
    are shuffled. The last batch of a window or an epoch may be smaller than `size`.
    """
    generator = random.Random(seed)
    remaining = max(1, round(epochs * count))
    while remaining > 0:
        order = generator.sample(range(count), count)[:remaining]
        remaining -= len(order)
        if lengths is None:
            yield chunks(order, size)
            continue
        batches: list[Batch] = []
        for window in chunks(order, size * WINDOW):
            similar = chunks(sorted(window, key=lambda i: (lengths[i], i)), size)
            generator.shuffle(similar)
            batches += similar
        yield batches


def chunks(order: list[int], size: int) -> list[Batch]:
    """Split `order` into chunks of `size`; the last may be shorter."""
    return [order[start : start + size] for start in range(0, len(order), size)]


def split_micro_batches(batch: Batch, micro_batches: int) -> list[Batch]:
    """Split a batch into that many micro-batches of about equal size, at most one per example."""
    micro_batches = min(micro_batches, len(batch))
    edges = [len(batch) * number // micro_batches for number in range(micro_batches + 1)]
    return [batch[low:high] for low, high in pairwise(edges)]


def draw_validation(count: int, seed: int) -> tuple[list[int], list[int]]:
    """Split `count` indices into train and validation; the seed draws a tenth for validation."""
    size = max(1, round(VALIDATION_FRACTION * count))
    validation = set(random.Random(f"{seed} judged").sample(range(count), size))
    return [index for index in range(count) if index not in validation], sorted(validation)


def prefetched(tasks: Iterable[Callable[[], Result]], *, ahead: int) -> Iterator[Result]:
    """Yield the results of `tasks` in order; up to `ahead` tasks run in threads in advance.

    With 0, each runs when its result is requested. Exceptions are raised at their position.
    """
    if not ahead:
        yield from (task() for task in tasks)
        return
    remaining = iter(tasks)
    with ThreadPoolExecutor(ahead) as pool:
        waiting = deque(pool.submit(task) for task in islice(remaining, ahead))
        while waiting:
            result = waiting.popleft().result()
            waiting += [pool.submit(task) for task in islice(remaining, 1)]
            yield result
