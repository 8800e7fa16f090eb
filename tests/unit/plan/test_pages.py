"""Which reports are one page, and which have one for each model."""

import pytest
from tightrope.plan.pages import ONE_PAGE, paged_models
from tightrope.plan.plan import Plan
from tightrope.variants import parse

VARIANT = "cpu-onnxruntime-int8-minmax-{}"


def plan(models: int, results: int, *, unavailable: bool) -> Plan:
    """A plan of so many results of each model; the last model has none that can run."""
    names = [f"m{number}" for number in range(models)]
    named = [(model, VARIANT.format(1 + one)) for model in names for one in range(results)]
    missing = [(*one, "no GPU") for one in named if unavailable or one[0] == names[-1]]
    jobs = [(model, parse(one)) for model, one in named if (model, one, "no GPU") not in missing]
    empty = {"failed": missing[:1], "unavailable": missing[1:]}
    return Plan(**{**dict.fromkeys(Plan._fields), "jobs": jobs, **empty})


@pytest.mark.parametrize("unavailable", [True, False])
@pytest.mark.parametrize(
    ("models", "results", "paged"),
    [(2, ONE_PAGE // 2, 0), (2, ONE_PAGE // 2 + 1, 2), (1, ONE_PAGE + 1, 0), (4, ONE_PAGE, 4)],
)
def test_models_have_pages_where_one_page_would_have_too_many_results(
    models: int, results: int, paged: int, unavailable: bool
) -> None:
    found = paged_models(plan(models, results, unavailable=unavailable))
    assert found == [f"m{number}" for number in range(paged)]
