"""The summary of each model alone, from which its own page is rendered."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from tightrope.summary.document import Summary

Record = Mapping[str, Any]
# lists of the summary whose entries are each of one model
OF_MODELS = (
    *("results", "recommendations", "races", "quantization", "traffic", "throughput"),
    *("profiles", "explanations", "idleness", "builds", "causes", "training", "compressions"),
    *("goals", "costs"),
)
# lists whose entries compare models: the section of the index that shows each
COMPARISONS = {
    "activations": ("activations", "Activations"),
    "families": ("family", "Smaller models"),
    "cascades": ("cascades", "Two models as one"),
}


def model_names(summary: Summary) -> list[str]:
    """Return the models in summary order, those without an entry in `models` last."""
    entries = [*(summary.get("results") or ()), *(summary.get("traffic") or ())]
    named = [entry.get("model") for entry in entries]
    return list(dict.fromkeys([*(summary.get("models") or {}), *named]))


def summaries_of_models(summary: Summary) -> Iterator[tuple[str, Summary]]:
    """Yield the name of each model with the summary of it alone, without comparisons of models.

    With a training is the one that it is compared with.
    """
    document: Mapping[str, Any] = summary
    entries = {key: by_model(document.get(key) or ()) for key in OF_MODELS}
    common = {key: value for key, value in document.items() if key not in COMPARISONS}
    facts = summary.get("models") or {}
    for name in model_names(summary):
        own = {key: found.get(name, []) for key, found in entries.items()}
        own["training"] = with_references(own["training"], entries["training"])
        models = {name: facts[name]} if name in facts else {}
        yield name, cast(Summary, {**common, **own, "models": models})


def by_model(entries: Iterable[Any]) -> dict[str, list[Any]]:
    """Return the entries of each model, in their order."""
    found: dict[str, list[Any]] = {}
    for entry in entries:
        found.setdefault(entry.get("model"), []).append(entry)
    return found


def with_references(own: list[Record], trainings: Mapping[str, list[Record]]) -> list[Record]:
    """Return the trainings of a model after those of the models that they are compared with."""
    others = {entry.get("reference"): None for entry in own}
    for entry in own:
        others.pop(entry.get("model"), None)
    return [entry for name in others for entry in trainings.get(str(name), ())] + own
