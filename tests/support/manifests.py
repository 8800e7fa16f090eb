"""Fields of manifests as the steps write them, for tests that write one by hand."""

from typing import Any

ENGINE: dict[str, Any] = {
    **{"status": "ok", "variant": "cpu-pytorch-fp32", "precision": "fp32", "checkpoint": None},
    **{"options": {}, "sources": {}, "libraries": {}, "build_s": 1.5},
}
CHECKPOINT: dict[str, Any] = {
    **{"task": "text-classification", "source": "path:tiny", "labels": ["bad", "good"]},
    **{"parameters": 1234, "architecture": "BertForSequenceClassification"},
    **{"max_sequence": None, "recipe": None, "training": None},
}
SPLIT: dict[str, Any] = {
    **{"task": "text-classification", "source": "files:moods.csv", "revision": None},
    **{"labels": ["bad", "good"], "split": "evaluation", "file": None},
    **{"rows": [0, 0, 1], "samples": 0},
}
