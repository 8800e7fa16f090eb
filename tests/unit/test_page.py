"""The report as a file: what it says, and that nothing in it can act."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tightrope.errors import ArtifactError
from tightrope.page import render_page
from tightrope.page_figures import speedups, trade_offs
from tightrope.page_numbers import (
    executed,
    megabytes,
    milliseconds,
    points,
    points_interval,
    ratio,
    ratio_interval,
    shape_label,
    shape_of,
    significant,
)
from tightrope.page_sections import sections

ROOT = Path(__file__).parents[2]
PARTS = {
    "template": ROOT / "scripts/report/page.html",
    "style": ROOT / "scripts/report/page.css",
    "script": ROOT / "scripts/report/page.js",
}
EXAMPLE = ROOT / "tests/data/summary.json"
ATTACK = '</script><script>window.owned = true</script><img src=x onerror="owned=1">'


class Outline(HTMLParser):
    """The text that a reader sees, the tags, and what the scripts hold."""

    def __init__(self, html):
        super().__init__()
        self.words, self.tags, self.scripts, self.inside = [], [], [], None
        self.feed(html)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag in ("script", "style"):
            self.inside = tag

    def handle_endtag(self, tag):
        self.inside = None if tag == self.inside else self.inside

    def handle_data(self, data):
        if self.inside == "script":
            self.scripts.append(data)
        elif self.inside is None:
            self.words.append(data)


@pytest.fixture
def summary():
    return json.loads(EXAMPLE.read_text())


@pytest.fixture
def render(tmp_path):
    def rendered(document):
        source, target = tmp_path / "summary.json", tmp_path / "summary.html"
        source.write_text(json.dumps(document))
        render_page(source, target, **PARTS)
        return Outline(target.read_text())

    return rendered


def failed(result):
    empty = {"accuracy": None, "latency": [], "size_bytes": None}
    return {**result, **empty, "status": "failed", "reason": "killed: out of memory"}


def test_the_same_summary_gives_the_same_bytes_and_leaves_no_other_file(tmp_path):
    for name in ("a.html", "b.html"):
        render_page(EXAMPLE, tmp_path / name, **PARTS)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "b.html"]


def test_a_summary_that_is_no_json_leaves_the_old_report_in_place(tmp_path):
    (tmp_path / "summary.json").write_text('{"schema": 1')
    (tmp_path / "summary.html").write_text("old")
    with pytest.raises(ArtifactError, match=r"summary\.json"):
        render_page(tmp_path / "summary.json", tmp_path / "summary.html", **PARTS)
    assert (tmp_path / "summary.html").read_text() == "old"


def test_the_recommendation_comes_first_with_its_reason_and_intervals(render, summary):
    text = render(summary).text
    assert text.index("What to deploy") < text.index("cpu-openvino-int8-bf16-nncf-512")
    assert summary["recommendations"][0]["why"] in text
    assert "4.16 to 4.54 faster" in text
    assert "\N{MINUS SIGN}0.2 to +0.8 kept" in text


def test_a_model_without_labels_says_that_accuracy_was_not_judged(render, summary):
    assert render(summary).text.count("no labels: accuracy was not judged") >= 2


def test_a_model_for_which_nothing_qualifies_says_so_and_why(render, summary):
    for entry in summary["recommendations"]:
        entry.update(variant=None, why="no variant keeps the answers")
    text = render(summary).text
    assert "Nothing can be recommended." in text
    assert "no variant keeps the answers" in text


def test_a_change_of_accuracy_that_is_unknown_is_a_dash(render, summary):
    for result in summary["results"]:
        if result["accuracy"]:
            unknown = dict.fromkeys(["delta", "delta_low", "delta_high", "flips", "p_value"])
            result["accuracy"] |= {**unknown, "verdict": "undecided"}
    text = render(summary).text
    assert "undecided" in text and "None" not in text


def test_what_could_not_run_is_grouped_by_reason(render, summary):
    text = render(summary).text
    section = text[text.index("What could not run here, and why") :]
    assert section.count("no NVIDIA GPU on this machine") == 1
    assert "cuda-tensorrt-fp16 cuda-tensorrt-int8-fp16-entropy-512" in section


def test_a_missing_percentile_is_an_en_dash_with_the_reason(render, summary):
    assert "\N{EN DASH} too few samples" in render(summary).text


def test_text_from_the_summary_never_becomes_markup(render, summary):
    summary["models"][ATTACK] = summary["models"].pop("minilm-docstrings")
    summary["hosts"][ATTACK] = {"cpu": ATTACK, "libraries": {ATTACK: ATTACK}, "isa": [ATTACK]}
    for entry in summary["results"] + summary["recommendations"]:
        entry["model"] = ATTACK if entry["model"] == "minilm-docstrings" else entry["model"]
    for result in summary["results"][:3]:
        result.update(variant=ATTACK, engine=ATTACK, precision=ATTACK, measured=ATTACK)
    summary["recommendations"][0].update(variant=ATTACK, why=ATTACK)
    outline = render(summary)
    kinds = [attributes.get("type") for tag, attributes in outline.tags if tag == "script"]
    assert kinds == ["application/json", "module", "module"]
    assert not any(tag == "img" or "onerror" in attributes for tag, attributes in outline.tags)
    assert ATTACK in outline.text
    json.loads(outline.scripts[0])


def test_the_page_names_no_address_to_load_from_and_forbids_loading(render, summary):
    outline = render(summary)
    places = [a.get("src") or a.get("href") for _, a in outline.tags if "src" in a or "href" in a]
    assert all(place.startswith(("#", "data:")) for place in places)
    policy = next(a["content"] for _, a in outline.tags if "http-equiv" in a)
    assert policy.startswith("default-src 'none'") and "unsafe-eval" not in policy


def test_each_chart_has_words_and_a_table_beside_it(render, summary):
    outline = render(summary)
    plots = [a for _, a in outline.tags if a.get("class") == "plot"]
    assert len(plots) == 10
    assert all(len(plot["aria-label"]) > 50 for plot in plots)
    assert len(re.findall(r"All \d+ as a table", outline.text)) == len(plots)


def test_fields_beyond_the_contract_may_be_missing(render, summary):
    for key in ("created", "accuracy_budget_points", "tightrope"):
        del summary[key]
    for result in summary["results"]:
        for key in ("executed", "measured", "engine_sha256"):
            result.pop(key, None)
        for row in result["latency"]:
            del row["pairs"], row["noisy"]
    for model in summary["models"].values():
        model.pop("labels", None)
    assert "cpu-openvino-bf16" in render(summary).text


@pytest.mark.parametrize("results", ["none", "failed"])
def test_a_run_without_any_measurement_still_gives_a_report(render, summary, results):
    every = [] if results == "none" else [failed(result) for result in summary["results"]]
    outline = render({**summary, "results": every, "recommendations": []})
    assert "Nothing can be recommended. Nothing was measured." in outline.text
    assert ("killed: out of memory" in outline.text) == (results == "failed")
    assert not any(attributes.get("class") == "plot" for _, attributes in outline.tags)


def test_one_measured_variant_alone_gives_a_report(render, summary):
    outline = render({**summary, "results": summary["results"][:1], "recommendations": []})
    assert "No variant was compared with the baseline." in outline.text


def test_the_front_holds_no_variant_that_another_one_beats(summary):
    model = next(m for m in sections(summary)["models"] if m["judged"])
    for figure in model["trade_offs"]:
        front = [point for point in figure["points"] if point["front"]]
        assert [point["front"] for point in front] == list(range(1, len(front) + 1))
        for point in figure["points"]:
            beaten = [
                other
                for other in figure["points"]
                if other["latency_ms"] < point["latency_ms"] and other["delta"] >= point["delta"]
            ]
            assert bool(point["front"]) == (not beaten)


def test_an_interval_that_ends_at_zero_keeps_its_end(summary):
    result = next(r for r in summary["results"] if r["variant"] == "cpu-openvino-bf16")
    result["accuracy"].update(delta=0.004, delta_low=0.0, delta_high=0.008)
    point = trade_offs([result], {}, {}, 1.0)[0]["points"][0]
    assert (point["delta_low"], point["delta_high"]) == (0.0, 0.8)


def test_a_variant_without_a_median_is_named_and_not_drawn(summary):
    result = next(r for r in summary["results"] if r["variant"] == "cpu-openvino-bf16")
    other = summary["results"][1]
    result["latency"][0]["p50_s"] = None
    figure = trade_offs([result, other], {}, {}, None)[0]
    assert figure["unplaced"] == ["cpu-openvino-bf16"]
    assert [point["variant"] for point in figure["points"]] == [other["variant"]]


def test_devices_are_compared_with_their_own_baselines(summary):
    result = next(r for r in summary["results"] if r["variant"] == "cpu-openvino-bf16")
    other = {**result, "device": "cuda", "variant": "cuda-tensorrt-fp16"}
    figures = speedups([result, other], {"cpu": "cpu-a", "cuda": "cuda-b"})
    assert [figure["baseline"] for figure in figures] == ["cpu-a"] * 4 + ["cuda-b"] * 4


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.01234, "0.0123"), (9.996, "10.0"), (999.6, "1,000"), (12345, "12,300")],
)
def test_numbers_have_three_significant_digits(value, text):
    assert significant(value) == text


def test_units_are_milliseconds_and_decimal_megabytes():
    assert milliseconds(0.0098) == "9.80"
    assert megabytes(90_900_000) == "90.9"
    assert milliseconds(None) is None and megabytes(float("nan")) is None


def test_points_are_signed_and_no_finer_than_the_samples():
    assert points(-0.0123, 1500) == "\N{MINUS SIGN}1.2"
    assert points(-0.0123, 20_000) == "\N{MINUS SIGN}1.23"
    assert points(0.02, 50) == "+2"
    assert points(-0.0001, 1500) == "0.0"
    assert points_interval({"delta_low": -0.01, "delta_high": 0.002}) == "\N{MINUS SIGN}1.0 to +0.2"
    assert points_interval(None) is None


def test_a_wide_speedup_interval_costs_a_decimal():
    narrow, wide = {"ratio": 4.18, "low": 4.02, "high": 4.35}, {"ratio": 4, "low": 3, "high": 6}
    assert (ratio(narrow), ratio_interval(narrow)) == (
        "4.18\N{MULTIPLICATION SIGN}",
        "4.02 to 4.35",
    )
    assert (ratio(wide), ratio_interval(wide)) == ("4.0\N{MULTIPLICATION SIGN}", "3.0 to 6.0")
    assert ratio(None) is None


def test_shapes_are_named_for_texts_and_images():
    text = shape_of({"batch": 16, "sequence": 128, "p50_s": 1})
    image = shape_of({"batch": 1, "height": 64, "width": 32})
    assert shape_label(text).replace("\xa0", " ") == "batch 16 \N{MIDDLE DOT} 128 tokens"
    assert "64 \N{MULTIPLICATION SIGN} 32 pixels" in shape_label(image).replace("\xa0", " ")


def test_executed_operators_are_summed_by_precision():
    counts = {"MatMul": {"int8": 36, "fp32": 12}, "Softmax": {"fp32": 30}}
    assert executed(counts) == "fp32 42, int8 36"
    assert executed(None) is None
