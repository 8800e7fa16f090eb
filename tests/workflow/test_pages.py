"""The pages of models as outputs of their rule: made, made again, and gone."""

from tiny_project import MODEL, Project

PLAN = "scripts/tightrope/plan/pages.py"
RENDERED = {"render_report/render_report"}


def test_pages_are_made_where_one_page_would_be_too_large_and_made_again_when_one_is_missing(
    project: Project,
) -> None:
    project.edit(PLAN, "ONE_PAGE = 500", "ONE_PAGE = 2")
    project.edit(PLAN, "and len(models) > 1", "")
    page, kept = project / f"reports/pages/{MODEL}.html", project / "reports/configurations/config"
    assert project.run() == RENDERED
    assert f'href="pages/{MODEL}.html"' in (project / "reports/summary.html").read_text()
    assert (kept / f"pages/{MODEL}.html").read_bytes() == page.read_bytes()
    assert project.plan() == set()
    page.unlink()
    assert project.run() == RENDERED
    assert "../summary.html" in page.read_text()
    project.edit(PLAN, "ONE_PAGE = 2", "ONE_PAGE = 500")
    assert project.run() == RENDERED, "one page again"
    assert not page.exists()
    assert "charts" in (project / "reports/summary.html").read_text()
    assert project.plan() == set()
