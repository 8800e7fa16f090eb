"""The report of many results: an index, and a page for each model."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from many_models import many_models, pages_of
from page_parts import PARTS
from tightrope.report.index import REASONS
from tightrope.report.page import render_page
from tightrope.report.style.numbers import TIMES

COPIES = 3


def rendered(folder: Path, document: dict[str, Any]) -> str:
    """The index of this summary; the pages are in `folder`/pages."""
    source = folder / "summary.json"
    source.write_text(json.dumps(document))
    target = folder / "summary.html"
    render_page(source, target, **PARTS, pages=pages_of(document, folder))
    return target.read_text()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, dict[str, Any]]:
    folder, document = tmp_path_factory.mktemp("index"), many_models(COPIES)
    return folder, rendered(folder, document), document


def text_of(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html.partition("<body>")[2]).split())


def row_of(html: str, model: str, variant: str) -> str:
    rows = re.findall(r"<tr>.*?</tr>", html, re.DOTALL)
    (row,) = (one for one in rows if f">{model}</a>" in one and f">{variant}<" in one)
    return row


def test_every_link_leads_to_a_page_and_every_page_leads_back(
    report: tuple[Path, str, dict[str, Any]],
) -> None:
    folder, index, document = report
    links = {link.partition("#")[0] for link in re.findall(r'href="([^"#:]+\.html[^"]*)"', index)}
    assert links == {f"pages/{model}.html" for model in document["models"]}
    for link in links:
        page = (folder / link).read_text()
        assert '<a href="../summary.html">All models</a>' in page


@pytest.mark.parametrize("name", ["minilm-docstrings", "vit-tiny-photos"])
def test_a_page_has_what_the_one_page_has_of_its_model(
    report: tuple[Path, str, dict[str, Any]], tmp_path: Path, name: str
) -> None:
    folder, _, document = report
    model = f"1-{name}"
    alone = {key: own(value, model) for key, value in document.items()}
    alone["models"] = {model: document["models"][model]}
    source, target = tmp_path / "summary.json", tmp_path / "summary.html"
    source.write_text(json.dumps(alone))
    render_page(source, target, **PARTS)
    link = re.compile(r'\s*<a href="\.\./summary\.html">All models</a>')
    page = (folder / "pages" / f"{model}.html").read_text()
    assert link.sub("", page) == target.read_text()


def own(value: Any, model: str) -> Any:
    of_models = isinstance(value, list) and value and isinstance(value[0], dict)
    return [one for one in value if one["model"] == model] if of_models else value


def test_the_index_says_what_to_deploy_of_each_model(
    report: tuple[Path, str, dict[str, Any]],
) -> None:
    _, index, document = report
    for one in document["recommendations"]:
        if one["variant"]:
            assert f'href="pages/{one["model"]}.html#deploy"' in index
            assert one["variant"] in index
    text = text_of(index)
    assert f"{2 * COPIES} models" in text
    assert "cpu-openvino-int8-bf16-nncf-512" in text
    assert f"4.35{TIMES} 4.16 to 4.54 faster" in text, "as on the page of the model"


def test_the_index_says_what_failed_and_where_the_reasons_are(
    report: tuple[Path, str, dict[str, Any]],
) -> None:
    _, index, document = report
    failed = [one for one in document["results"] if one["status"] == "failed"]
    section = index.partition('<section id="not-run">')[2]
    assert failed
    for one in failed:
        assert f'<a href="pages/{one["model"]}.html#not-run">{one["model"]}</a>' in section
        assert f'<code class="variant">{one["variant"]}</code>' in section
    assert "<script>window.owned" not in section, "a reason stays text"


def test_the_index_without_charts_has_no_library_for_them(
    report: tuple[Path, str, dict[str, Any]],
) -> None:
    _, index, _ = report
    assert len(index) < 100_000
    assert 'id="charts"' in index, "the script that sorts tables reads it"


def test_many_reasons_are_cut_short_on_the_index_and_whole_on_the_pages(tmp_path: Path) -> None:
    document = many_models(2)
    failed = next(one for one in document["results"] if one["status"] == "failed")
    count = 3 * REASONS
    document["results"] += [
        {**failed, "variant": f"cpu-onnxruntime-int8-minmax-{one}", "reason": f"reason {one}."}
        for one in range(count)
    ]
    index = rendered(tmp_path, document)
    page = (tmp_path / "pages" / f"{failed['model']}.html").read_text()
    assert len(re.findall(r"reason \d+\.", index)) < REASONS
    assert re.search(r"20\d other reasons are on the pages", text_of(index))
    assert len({*re.findall(r"reason \d+\.", page)}) == count


def test_pages_of_models_that_are_gone_are_deleted_and_the_same_summary_gives_the_same_bytes(
    tmp_path: Path,
) -> None:
    document = many_models(2)
    first = rendered(tmp_path, document), [one.read_bytes() for one in pages_of(document, tmp_path)]
    again = rendered(tmp_path, document), [one.read_bytes() for one in pages_of(document, tmp_path)]
    assert first == again
    fewer = many_models(1)
    rendered(tmp_path, fewer)
    assert {*tmp_path.glob("pages/*")} == {*pages_of(fewer, tmp_path)}
    render_page(tmp_path / "summary.json", tmp_path / "summary.html", **PARTS)
    assert not [*tmp_path.glob("pages/*.html")], "one page again"


def test_comparisons_of_models_are_on_the_index_and_linked_from_the_pages(tmp_path: Path) -> None:
    document = many_models(1)
    name = next(iter(document["models"]))
    failed = {"reason": "killed: out of memory", "members": [], "shapes": []}
    document["families"] = [{"root": name, "device": "cpu", **failed}]
    index = rendered(tmp_path, document)
    assert "Not timed together: killed: out of memory" in text_of(index)
    page = (tmp_path / "pages" / f"{name}.html").read_text()
    assert '<a href="../summary.html#family">Smaller models</a>' in page
    assert "Not timed together" not in page


def test_other_load_is_told_once_with_the_command_that_measures_again(tmp_path: Path) -> None:
    document = many_models(1)
    rows = [row for one in document["results"] for row in one.get("latency") or ()]
    for number in range(2 * REASONS):
        rows[number % len(rows)]["disturbed"] = f"other load {number % len(rows)}"
    index = rendered(tmp_path, document)
    assert index.count("remeasure=disturbed") == 1
