"""The pages of the report: one, or of many results an index and a page for each model."""

from pathlib import Path

from tightrope.plan.plan import Plan

# A page of 1,000 results has 19 MB and 435,000 elements, and a browser takes seconds to open it.
ONE_PAGE = 500
PAGES = Path("reports/pages")


def paged_models(plan: Plan) -> list[str]:
    """Return the models that have a page of their own; none where one page shows all results."""
    results = [model for model, _ in plan.jobs]
    results += [model for model, _, _ in (*plan.failed, *plan.unavailable)]
    models = list(dict.fromkeys(results))
    return models if len(results) > ONE_PAGE and len(models) > 1 else []
