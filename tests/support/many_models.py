"""A summary of many models, copies of those of the example."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).parents[1] / "data/summary.json"


def many_models(copies: int) -> dict[str, Any]:
    """The example with so many copies of each of its two models, which are `{number}-{name}`."""
    example = json.loads(EXAMPLE.read_text())
    document = {key: value for key, value in example.items() if not of_models(value)}
    document["models"] = {
        f"{number}-{name}": facts
        for number in range(copies)
        for name, facts in example["models"].items()
    }
    for key, entries in example.items():
        if of_models(entries):
            document[key] = [
                {**deepcopy(entry), "model": f"{number}-{entry['model']}"}
                for number in range(copies)
                for entry in entries
            ]
    return document


def of_models(value: Any) -> bool:
    """Whether this is a list of entries that are each of a model."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def pages_of(document: dict[str, Any], folder: Path) -> list[Path]:
    """The pages of the models beside an index in that folder."""
    return [folder / "pages" / f"{model}.html" for model in document["models"]]
