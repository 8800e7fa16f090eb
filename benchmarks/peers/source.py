"""What every recipe starts from, and the drop in accuracy that is allowed to who looks at it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAX_DROP = 0.01


@dataclass(frozen=True)
class Source:
    """A checkpoint folder, its simplified ONNX file and the examples that a recipe may see.

    The first `samples` examples calibrate; all of them, with their labels, judge what a recipe
    tries. The longest sequence is in tokens.
    """

    checkpoint: Path
    onnx: Path
    examples: list[dict[str, Any]]
    samples: int
    max_sequence: int

    @property
    def texts(self) -> list[str]:
        """The texts for calibration."""
        return [example["text"] for example in self.examples[: self.samples]]


def read_examples(split: Path, samples: int) -> list[dict[str, Any]]:
    """Return every example's `text` and `label`; ValueError where there are fewer than `samples`.

    `split` is splits/calibration.json, which names the file and its rows.
    """
    manifest = json.loads(split.read_text())
    rows = range(*manifest["rows"])
    if len(rows) < samples:
        raise ValueError(
            f"{split} has {len(rows)} examples, {samples} are asked for: --samples fewer"
        )
    lines = (split.parent / manifest["file"]).read_text().splitlines()
    return [json.loads(lines[row]) for row in rows]
