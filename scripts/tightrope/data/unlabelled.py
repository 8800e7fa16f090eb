"""Texts without labels, which a student learns from its teacher."""

from collections.abc import Iterable
from pathlib import Path

from tightrope.data.source import load_kind, parse_source
from tightrope.data.splits import fingerprint
from tightrope.errors import TightropeError
from tightrope.inputs.encode import read_split


def read_unlabelled(
    source: str, *, column: str, seed: int, splits: Iterable[Path | str]
) -> list[str]:
    """Return the distinct texts of the source, in its order, that occur in none of the `splits`.

    `column` is that of texts in a table. A text of the evaluation split would let the student learn
    what its teacher answers there. Raises TightropeError where no text is left.
    """
    kind, location = parse_source(source)
    texts = load_kind(kind, task="text-classification").read_unlabelled(
        source, location, column=column, seed=seed
    )
    seen = {fingerprint(example["text"]) for split in splits for example in read_split(split)}
    kept = []
    for text in texts:
        if (found := fingerprint(text)) not in seen:
            seen.add(found)
            kept.append(text)
    if not kept:
        raise TightropeError(
            f"distill.unlabelled = {source}: every text occurs in the data of the model; take "
            "other texts, or remove the key"
        )
    return kept
