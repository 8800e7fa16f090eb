"""The summary of each model alone."""

from typing import Any, get_origin, get_type_hints

from many_models import many_models
from tightrope.report.models import COMPARISONS, OF_MODELS, summaries_of_models
from tightrope.summary.document import Summary

# lists of the summary that are of the whole run
OF_THE_RUN = {"configuration", "overrides"}


def test_every_list_of_the_summary_is_of_models_or_compares_them() -> None:
    """A new one has to be given a place on the index or on the pages of the models."""
    lists = {key for key, kind in get_type_hints(Summary).items() if get_origin(kind) is list}
    assert lists == {*OF_MODELS, *COMPARISONS} | OF_THE_RUN


def test_a_model_alone_has_its_entries_and_what_is_of_the_whole_run() -> None:
    document: Any = many_models(2)
    alone = dict(summaries_of_models(document))
    assert list(alone) == list(document["models"])
    for name, own in alone.items():
        assert own["models"] == {name: document["models"][name]}
        assert own["created"] == document["created"]
        for key in OF_MODELS:
            expected = [one for one in document.get(key, []) if one["model"] == name]
            assert own[key] == expected  # type: ignore[literal-required]
    assert sum(len(own["results"]) for own in alone.values()) == len(document["results"])


def test_a_training_is_after_the_one_that_it_is_compared_with() -> None:
    trainings = [
        {"model": "plain", "reference": None},
        {"model": "relu", "reference": "plain"},
        {"model": "other", "reference": None},
    ]
    models: dict[str, Any] = {name: {} for name in ("plain", "relu", "other")}
    document: Any = {"models": models, "training": trainings}
    alone = dict(summaries_of_models(document))
    assert [one["model"] for one in alone["relu"]["training"]] == ["plain", "relu"]
    assert [one["model"] for one in alone["plain"]["training"]] == ["plain"]


def test_comparisons_of_models_are_on_no_page_of_a_model() -> None:
    document: Any = {"models": {"m": {}}, "families": [{"root": "m"}], "cascades": [{}]}
    ((_, own),) = summaries_of_models(document)
    assert not {*COMPARISONS} & {*own}
