"""Models that differ only in their activation, and the variants of them that are timed in pairs."""

import json
from typing import Any

from tightrope.variants import Variant

Document = dict[str, Any]
Jobs = list[tuple[str, Variant]]


def references(config: Document) -> dict[str, str]:
    """Map each model to its reference, the model that differs from it only in `activation`.

    Of models alike but for `activation`, the reference is the first with the checkpoint's own
    activation, or the first of all without such a model. The reference has no entry, nor has a
    model with the same activation as the reference.
    """
    models = config["models"]
    families: dict[str, list[str]] = {}
    for name, model in models.items():
        alike = {key: value for key, value in model.items() if key != "activation"}
        families.setdefault(json.dumps(alike, sort_keys=True), []).append(name)
    found: dict[str, str] = {}
    for names in families.values():
        first = next((name for name in names if models[name]["activation"] is None), names[0])
        others = [one for one in names if models[one]["activation"] != models[first]["activation"]]
        found |= dict.fromkeys(others, first)
    return found


def compared(config: Document, jobs: Jobs) -> Jobs:
    """Return the jobs whose model has a reference with a job for the same variant."""
    reference, planned = references(config), set(jobs)
    return [
        (model, variant)
        for model, variant in jobs
        if model in reference and (reference[model], variant) in planned
    ]
