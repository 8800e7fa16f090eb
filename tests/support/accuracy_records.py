"""Accuracy records with made-up logits."""

from typing import Any

import numpy as np
from tightrope.records.accuracy import AccuracyRecord


def accuracy_record(*, logits: Any = None, **fields: Any) -> AccuracyRecord:
    """A record with these fields and logits, by default with zeros of one class."""
    record = AccuracyRecord(**fields)
    rows = [[0.0]] * len(record.predictions) if logits is None else logits
    record.logits = np.array(rows, np.float32).reshape(len(rows), -1 if len(rows) else 0)
    return record
