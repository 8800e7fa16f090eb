"""How many texts of each split were cut, in words."""

from collections.abc import Mapping

# splits, and the settings at whose number of tokens their texts are cut
KEYS = {
    "evaluation": "max_sequence",
    "calibration": "max_sequence",
    "train": "train.sequence",
}


def truncation_words(splits: Mapping[str, Mapping[str, int]]) -> str | None:
    """Return which texts were cut, per split; None if none were."""
    words = []
    for split, key in KEYS.items():
        found = splits.get(split)
        if found and found["truncated"]:
            texts = "text was" if found["texts"] == 1 else "texts were"
            words.append(
                f"{found['truncated']:,} of {found['texts']:,} {split} {texts} cut at "
                f"{key} = {found['max_sequence']} tokens"
            )
    return "; ".join(words) or None
