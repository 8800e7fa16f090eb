"""What the summary of a model says of its evaluation examples."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from tightrope.inputs.encode import read_split
from tightrope.records.accuracy import AccuracyRecord
from tightrope.signature import IMAGE
from tightrope.summary.chance import chance_of
from tightrope.summary.document import Summary
from tightrope.summary.model_types import Model
from tightrope.summary.recommend import of_models
from tightrope.summary.result_types import Result
from tightrope.summary.splits import SplitsByModel
from tightrope.summary.thumbnails import flipped_indices, thumbnails


def with_examples(
    summary: Summary,
    judged: Mapping[tuple[str, str], AccuracyRecord],
    splits: SplitsByModel,
) -> Summary:
    """Return a summary whose models have their chance accuracy and thumbnails.

    `judged` holds the accuracy records by (model, variant), `splits` the manifests of the splits.
    """
    results = of_models(summary["results"])
    models: dict[str, Model] = {
        name: {
            **model,
            "chance": chance_of(name, judged),
            "thumbnails": thumbnails_of(
                model,
                results.get(name, []),
                splits[name]["evaluation"],
            ),
        }
        for name, model in summary["models"].items()
    }
    return {**summary, "models": models}


def thumbnails_of(model: Model, results: Iterable[Result], split: Path | str) -> dict[str, str]:
    """Return the thumbnails of a model of images, for texts none."""
    indices = flipped_indices(results) if model["task"] == IMAGE else []
    return thumbnails(read_split(split), indices) if indices else {}
