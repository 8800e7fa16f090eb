"""Accuracy records with made-up logits."""

from typing import Any

import numpy as np
from raced import HOST
from tightrope.records.accuracy import AccuracyRecord


def accuracy_record(*, logits: Any = None, **fields: Any) -> AccuracyRecord:
    """A record of model m with these fields and logits, by default with zeros of one class.

    Unless it is said otherwise all labels are 0, and all margins 1.
    """
    known = {"model": "m", "variant": "cpu-onnxruntime-fp32", "host": HOST, "libraries": {}}
    if count := len(fields.get("predictions", ())):
        known |= {"data_sha256": "d", "labels": [0] * count, "margins": [1.0] * count}
    record = AccuracyRecord(**{**known, **fields})
    rows = [[0.0]] * len(record.predictions) if logits is None else logits
    record.logits = np.array(rows, np.float32).reshape(len(rows), -1 if len(rows) else 0)
    return record
