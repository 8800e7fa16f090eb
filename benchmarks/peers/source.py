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


def read_examples(file: Path, samples: int) -> list[dict[str, Any]]:
    """Return every line's `text` and `label`; ValueError where there are fewer than `samples`."""
    lines = file.read_text().splitlines()
    if len(lines) < samples:
        raise ValueError(f"{file} has {len(lines)} lines, {samples} are asked for: --samples fewer")
    return [json.loads(line) for line in lines]
