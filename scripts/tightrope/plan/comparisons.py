"""Which models differ in their activation alone, and which of their variants are timed in pairs."""

import json
from typing import Any

from tightrope.variants import Variant

Document = dict[str, Any]
Jobs = list[tuple[str, Variant]]


def references(config: Document) -> dict[str, str]:
    """For each model the one from which it differs in `activation` alone: its reference.

    Of models that are alike but for `activation`, the reference is the first that keeps the
    checkpoint's own, or the first of all where none keeps it. It has no entry of its own, nor has a
    model with the reference's activation.
    """
    models = config["models"]
    families: dict[str, list[str]] = {}
    for name, model in models.items():
        alike = {key: value for key, value in model.items() if key != "activation"}
        families.setdefault(json.dumps(alike, sort_keys=True), []).append(name)
    found = {}
    for names in families.values():
        first = next((name for name in names if models[name]["activation"] is None), names[0])
        others = [one for one in names if models[one]["activation"] != models[first]["activation"]]
        found |= dict.fromkeys(others, first)
    return found


def compared(config: Document, jobs: Jobs) -> Jobs:
    """Those of the jobs whose model has a reference that has a job for the same variant."""
    reference = references(config)
    return [(model, variant) for model, variant in jobs if (reference.get(model), variant) in jobs]
