"""The report as a file: what it says, and that nothing in it can act."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from gpu_states import GPU
from page_parts import PARTS
from tightrope.errors import ArtifactError
from tightrope.report.page import render_page, sections
from tightrope.report.sections.answers import answers_section
from tightrope.report.sections.figures import number_front, trade_offs
from tightrope.report.sections.speedups import speedups
from tightrope.report.sections.steadiness import disturbed_section, remarks, steadiness
from tightrope.report.sections.traffic import traffic_section
from tightrope.report.style.numbers import (
    bounded,
    executed,
    gain,
    megabytes,
    milliseconds,
    mostly_elsewhere,
    points,
    points_interval,
    points_up,
    products,
    ratio,
    ratio_interval,
    shape_label,
    shape_of,
    significant,
)

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "tests/data/summary.json"
ADDED = ("stop", "disturbed_pairs", "noise", "threads_busy", "cores_used")
NONE = {"padding": "none", "ties_changed": None}
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


@pytest.fixture(scope="module")
def render(tmp_path_factory):
    """Render a summary; the same one, which many tests look at, once."""
    folder = tmp_path_factory.mktemp("page")
    outlines = {}

    def rendered(document):
        source, target = folder / "summary.json", folder / "summary.html"
        text = json.dumps(document)
        if text not in outlines:
            source.write_text(text)
            render_page(source, target, **PARTS)
            outlines[text] = Outline(target.read_text())
        return outlines[text]

    return rendered


def failed(result):
    empty = {"accuracy": None, "latency": [], "size_bytes": None, "audit": None, "search": None}
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
    assert render(summary).text.count("no labels: accuracy was not evaluated") >= 2


def test_a_model_for_which_nothing_qualifies_says_so_and_why(render, summary):
    for entry in summary["recommendations"]:
        entry.update(variant=None, why="no variant keeps the accuracy")
    text = render(summary).text
    assert "Nothing can be recommended." in text
    assert "no variant keeps the accuracy" in text


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
        result["latency"][0].update(noisy=True, noise=[ATTACK])
    summary["recommendations"][0].update(variant=ATTACK, why=ATTACK)
    for entry in summary["traffic"]:
        entry.update(model=ATTACK, variant=ATTACK, reason=ATTACK, loadgen=ATTACK)
    for row in summary["traffic"][0]["rows"]:
        row["padding"] = ATTACK
    for example in summary["results"][1]["accuracy"]["flipped"]:
        example.update(text=ATTACK, label=ATTACK, baseline=ATTACK, prediction=ATTACK)
    quantized = next(r for r in summary["results"] if (r["audit"] or {}).get("tensors"))
    quantized["audit"]["reason"] = ATTACK
    quantized["audit"]["tensors"][0]["operator"] = ATTACK
    for entry in summary["quantization"]:
        entry.update(model=ATTACK, engine=ATTACK, variant=ATTACK, unquantized=ATTACK, why=[ATTACK])
        entry.update(verdict="do not quantize", failed=ATTACK, host=ATTACK)
    auto = next(r for r in summary["results"] if r["search"])
    auto["search"].update(in_float=[ATTACK])
    auto.update(variant=ATTACK, calibration=f"{ATTACK.replace('-', '')}-7-{ATTACK}", engine=ATTACK)
    (sensitivity,) = summary["models"][ATTACK]["sensitivity"].values()
    sensitivity["operators"][0]["operator"] = ATTACK
    summary["models"][ATTACK]["sensitivity"] = {ATTACK: sensitivity}
    outline = render(summary)
    kinds = [attributes.get("type") for tag, attributes in outline.tags if tag == "script"]
    assert kinds == ["application/json", "module", "module"]
    assert not any(tag == "img" or "onerror" in attributes for tag, attributes in outline.tags)
    assert answers_part(outline.text).count(ATTACK) >= 4 * 9  # each field of the changed answers
    assert int8_part(outline.text).count(ATTACK) >= 8 + 4 * 10
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
    figures = [a for tag, a in outline.tags if tag == "figure"]
    # one figure has a panel for the accuracy and one for the agreement
    assert (len(plots), len(figures)) == (14, 13)
    assert all(len(plot["aria-label"]) > 50 for plot in plots)
    assert len(re.findall(r"All \d+ as a table", outline.text)) == len(figures)


def test_fields_beyond_the_contract_may_be_missing(render, summary):
    for key in ("created", "configuration", "accuracy_budget_points", "tightrope"):
        del summary[key]
    for result in summary["results"]:
        for key in ("executed", "measured", "engine_sha256", "audit", "search"):
            result.pop(key, None)
        for key in ("threads", "baseline_failed"):
            del result[key]
        for row in result["latency"]:
            for key in ("pairs", "noisy", *ADDED):
                del row[key]
    del summary["traffic"], summary["quantization"]
    for model in summary["models"].values():
        model.pop("labels", None)
        del model["sensitivity"]
    text = render(summary).text
    assert "cpu-openvino-bf16" in text
    assert "How steady was it?" not in text and "Real traffic" not in text


def test_each_recommendation_names_its_files_and_the_configuration(render, summary):
    summary["configuration"] = ["config/config.yaml", "config/mine.yaml"]
    text = render(summary).text
    files = f"artifacts/minilm-docstrings/engines/{summary['recommendations'][0]['variant']}/"
    assert f"Its files: {files} , configured by config/config.yaml , config/mine.yaml" in text
    assert text.count("configured by") == len(summary["recommendations"])


def test_each_recommended_variant_has_a_command_that_bundles_it(render, summary):
    variant = summary["recommendations"][0]["variant"]
    summary["configuration"] = ["config/mine.yaml"]
    path = f"artifacts/minilm-docstrings/bundle/{variant}.tar.gz"
    words = f"snakemake --cores 1 {path} --configfile config/mine.yaml"
    assert render(summary).text.count(words) == 1
    for result in summary["results"]:
        result["device"] = "cuda"
    assert "bundle" not in render(summary).text


@pytest.mark.parametrize("results", ["none", "failed"])
def test_a_run_without_any_measurement_still_gives_a_report(render, summary, results):
    every = [] if results == "none" else [failed(result) for result in summary["results"]]
    outline = render({**summary, "results": every, "recommendations": [], "traffic": []})
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
    point = trade_offs([result], {}, {}, {}, 1.0)[0]["points"][0]
    assert (point["delta_low"], point["delta_high"]) == (0.0, 0.8)


def test_a_variant_without_a_time_is_named_and_not_drawn(summary):
    result = next(r for r in summary["results"] if r["variant"] == "cpu-openvino-bf16")
    other = summary["results"][1]
    result["latency"][0]["paired_s"] = None
    figure = trade_offs([result, other], {}, {}, {}, None)[0]
    assert figure["unplaced"] == ["cpu-openvino-bf16"]
    assert [point["variant"] for point in figure["points"]] == [other["variant"]]


def test_devices_are_compared_with_their_own_baselines(summary):
    result = next(r for r in summary["results"] if r["variant"] == "cpu-openvino-bf16")
    other = {**result, "device": "cuda", "variant": "cuda-tensorrt-fp16"}
    figures = speedups([result, other], {"cpu": "cpu-a", "cuda": "cuda-b"})
    assert [figure["baseline"] for figure in figures] == ["cpu-a"] * 4 + ["cuda-b"] * 4


def disturb(summary, variant, place=0, **changes):
    """Have other load disturb a row of that variant, and what it has no numbers for."""
    for result in summary["results"]:
        if result["variant"] == variant and len(result["latency"]) > place:
            lost = {"ratio": None, "low": None, "high": None, "verdict": "disturbed"}
            empty = dict.fromkeys(("p50_s", "p90_s", "p99_s", "mean_s", "paired_s"))
            row = {"disturbed": f"{variant}: only 2 of 12", "speedup": lost, **empty, "samples": 0}
            result["latency"][place].update(row | changes)
            return


COMMAND = "snakemake --cores 1 --config remeasure=disturbed"


def test_a_quiet_run_has_no_banner(render, summary):
    text = render(summary).text
    assert "Provisional:" not in text and COMMAND not in text
    assert disturbed_section(summary) is None


def test_disturbed_rows_stand_in_a_banner_above_the_decision_with_the_command(render, summary):
    disturb(summary, "cpu-openvino-bf16")
    disturb(summary, "cpu-compile-bf16")
    text = render(summary).text
    assert "Provisional:" not in text  # no choice could change
    words = "Other load disturbed 2 of 92 latencies. They have no numbers, and no choice depends"
    assert words in text
    summary["recommendations"][0]["provisional"] = True
    text = render(summary).text
    banner = text[text.index("Provisional:") : text.index(COMMAND)]
    assert "Other load disturbed 2 of 92 latencies. They have no numbers" in banner
    assert text.index("What to deploy") < text.index("Provisional:")
    assert text.index(COMMAND) < text.index(summary["recommendations"][0]["why"])
    for remedy in ("threads one fewer", "--config 'latency={accept_disturbed: true}'"):
        assert remedy in text
    assert "cpu-openvino-bf16: only 2 of 12" in text


def test_a_disturbed_race_stands_in_the_banner_with_its_reason(render, summary):
    reason = "other load disturbed the race: 4 of 24 rounds are left; the busiest: python3 train.py"
    summary["races"][0].update(status="disturbed", variant=None, reason=reason)
    summary["recommendations"][0].update(variant=None, why=f"disturbed: {reason}", provisional=True)
    text = render(summary).text
    assert "Other load disturbed the decision at 1 shape. " in text
    assert text.count(reason) >= 2
    disturb(summary, "cpu-openvino-bf16")
    assert "disturbed 1 of 92 latencies and the decision at 1 shape. " in render(summary).text


def test_accepted_disturbed_numbers_are_marked_wherever_they_stand(render, summary):
    result = summary["results"][1]
    result["latency"][0].update(disturbed="only 2 of 12", provisional=True)
    text = render(summary).text
    assert "Their numbers are given all the same, as configured." in text
    assert [one.word for one in remarks(result, result["latency"][0])] == ["provisional"]
    assert "provisional only 2 of 12" in text


def test_a_choice_that_a_disturbed_variant_could_change_is_provisional(render, summary):
    first = summary["recommendations"][0]
    first.update(provisional=True, disturbed=["cpu-openvino-bf16"])
    words = "provisional : other load disturbed"
    assert f"{words} cpu-openvino-bf16 " in render(summary).text
    first["disturbed"] = ["cpu-openvino-bf16", "cpu-openvino-fp32", "cpu-compile-bf16"]
    assert f"{words} 3 variants that keep the accuracy" in render(summary).text
    first["disturbed"] = []
    assert f"{words} what it rests on" in render(summary).text


def test_a_disturbed_row_says_so_and_draws_no_mark(render, summary):
    name = "cpu-openvino-bf16"
    disturb(summary, name)
    model = next(m for m in sections(summary)["models"] if m["judged"])
    trade_off, speedup = model["trade_offs"][0], model["speedups"][0]
    assert trade_off["unplaced"] == [name]
    assert name not in {point["variant"] for point in trade_off["points"]}
    assert name not in {row["variant"] for row in speedup["rows"]}
    assert name in {point["variant"] for point in model["trade_offs"][1]["points"]}
    text = render(summary).text
    assert "disturbed cpu-openvino-bf16: only 2 of 12" in text
    assert not re.search(r"\b(None|nan) ?(ms|,|\)|to)", text)


def test_where_the_baseline_was_disturbed_the_page_still_has_its_row(render, summary):
    disturb(summary, "cpu-pytorch-fp32")
    summary["results"][0]["latency"][0]["speedup"] = None
    text = render(summary).text
    assert "disturbed cpu-pytorch-fp32: only 2 of 12" in text and "None" not in text


def test_disturbed_pairs_are_counted(summary, render):
    for result in summary["results"]:
        for row in result["latency"]:
            row["disturbed_pairs"] = 0
    summary["results"][0]["latency"][0]["disturbed_pairs"] = 1
    assert "1 pair of blocks disturbed by other load" in render(summary).text
    assert steadiness(summary["results"])["disturbed"] == 1


def test_how_much_the_machine_changed_its_speed_is_told_where_it_matters(summary, render):
    for result in summary["results"]:
        for row in result["latency"]:
            row["machine_spread"] = 0.0199
    assert "changed its speed by" not in render(summary).text
    summary["results"][0]["latency"][0]["machine_spread"] = 0.129
    assert "The machine changed its speed by 13 % " in render(summary).text


def test_text_of_disturbed_rows_and_races_never_becomes_markup(render, summary):
    disturb(summary, "cpu-openvino-bf16", disturbed=ATTACK)
    summary["races"][0].update(status="disturbed", variant=None, reason=ATTACK)
    summary["recommendations"][1].update(provisional=True, disturbed=[ATTACK], equal=[ATTACK])
    outline = render(summary)
    assert not any(tag == "img" or "onerror" in attributes for tag, attributes in outline.tags)
    assert outline.text.count(ATTACK) >= 3


def point(variant, milliseconds, delta, verdict="kept"):
    result = {"accuracy": {"verdict": verdict}}
    return {"variant": variant, "latency_ms": milliseconds, "delta": delta, "result": result}


def fronts(*points, equal=()):
    number_front(placed := list(points), set(equal))
    return {one["variant"]: one["front"] for one in placed}


def test_those_that_are_equal_in_speed_do_not_beat_each_other():
    pair = point("a", 1.0, 0.5), point("b", 1.01, 0.4)
    assert fronts(*pair) == {"a": 1, "b": None}
    assert fronts(*pair, equal=("a", "b")) == {"a": 1, "b": 2}
    assert fronts(*pair, equal=("a", "c")) == {"a": 1, "b": None}


def test_what_may_not_keep_the_answers_beats_nothing():
    assert fronts(point("a", 1.0, 0.5, "undecided"), point("b", 2.0, 0.4)) == {"a": 1, "b": 2}
    assert fronts(point("a", 1.0, 0.5), point("b", 2.0, 0.4, "undecided")) == {"a": 1, "b": None}


def test_what_is_recommended_is_on_the_front_of_its_shape(summary):
    model = next(m for m in sections(summary)["models"] if m["judged"])
    for figure in model["trade_offs"]:
        (chosen,) = [one for one in figure["points"] if one["deploy"]]
        assert chosen["front"]


def test_the_chart_has_the_times_by_which_was_decided(summary):
    model = next(m for m in sections(summary)["models"] if m["judged"])
    for one in model["trade_offs"][0]["points"]:
        assert one["latency_ms"] == 1e3 * one["row"]["paired_s"]


def test_a_noisy_row_says_why_in_words_and_the_remedy_stands_once(render, summary):
    outline = render(summary)
    assert "noisy the engine that was not timed used 6 % of a core" in outline.text
    assert "noisy : other programs used up to 0.7 cores of its processors" in outline.text
    remedy = "delete reports/<model>/<variant>.latency.json and run again; only that is measured"
    assert outline.text.count(remedy) == 1
    assert "9 of 92 rows noisy" in outline.text


def test_what_stopped_at_the_time_limit_is_counted_with_the_key_to_raise(render, summary):
    text = render(summary).text
    assert "time limit stopped at the time limit: the interval is wider than asked for" in text
    assert "3 rows stopped at the time limit" in text
    assert "raise latency.comparison_seconds" in text


def test_a_steady_run_says_so(render, summary):
    for result in summary["results"]:
        for row in result["latency"]:
            row.update(noisy=False, noise=[], stop="width", disturbed_pairs=0, threads_busy=2)
    text = render(summary).text
    assert "None of 92 rows noisy" in text and "None of the rows stopped at the time limit" in text
    assert "disturbed by other load" not in text and "than configured" not in text


def test_a_summary_without_reasons_for_its_noise_still_names_the_noisy_rows(render, summary):
    for result in summary["results"]:
        for row in result["latency"]:
            for key in ADDED:
                del row[key]
    text = render(summary).text
    assert "noisy no reason was recorded" in text
    assert "stopped at the time limit" not in text


@pytest.mark.parametrize(
    ("device", "busy", "words"),
    [
        ("cpu", 1, ["kept 1 of 4 threads busy"]),
        ("cpu", 5, ["kept 5 threads busy, 4 were configured"]),
        ("cpu", 4, None),
        ("cpu", None, None),
        ("cuda", 1, None),
    ],
)
def test_a_row_says_when_other_threads_worked_than_configured(device, busy, words):
    result = {"device": device, "threads": 4, "variant": "v"}
    found = remarks(result, {"threads_busy": busy})
    assert [remark.reasons for remark in found] == ([words] if words else [])


def test_a_baseline_at_the_time_limit_is_not_said_to_have_an_interval():
    (remark,) = remarks({}, {"stop": "time limit", "speedup": None})
    assert "interval" not in remark.reasons[0]


def test_variants_with_as_many_busy_threads_are_named_once(summary):
    assert steadiness(summary["results"])["threads"] == [
        ("kept 3 threads busy, 2 were configured", ["cpu-inductor-bf16"]),
        ("kept 1 of 2 threads busy", ["cpu-onnxruntime-int8-dynamic"]),
    ]


def test_variants_without_their_baseline_say_why_there_is_no_speedup(render, summary):
    for result in summary["results"]:
        if result["model"] == "vit-tiny-photos":
            result["baseline_failed"] = "baseline: killed by signal 9"
            for row in result["latency"]:
                row["speedup"] = None
    text = render(summary).text
    assert text.count("baseline: killed by signal 9") == 1
    assert "the baseline could not be measured" in text


def test_texts_that_were_cut_are_told_where_accuracy_is_and_images_are_not(render, summary):
    text = render(summary).text
    cut = "37 of 1,500 evaluation texts were cut at max_sequence = 128 tokens; "
    cut += "1,284 of 10,000 train texts were cut at train.sequence = 64 tokens"
    assert text.count(cut) == 2
    answers = answers_part(text)
    assert f"minilm-docstrings {cut}." in answers and answers.count("texts were cut") == 2
    for model in summary["models"].values():
        model["truncation"] = {}
    assert "were cut at" not in render(summary).text


def test_traffic_is_told_with_its_settings_and_a_row_for_each_way_to_pad(render, summary):
    text = render(summary).text
    section = text[text.index("MLPerf LoadGen 6.0.17 sent") : text.index("Size, memory and time")]
    assert "batches of up to 32, with 2 threads" in section and "within 100 ms" in section
    times = "\N{MULTIPLICATION SIGN}"
    row = f"bucketed 692 2.11{times} 2.03 to 2.19 faster 2.4{times} 24.3 2.50 270 4 + 1 tie"
    assert row in section
    dash = "\N{EN DASH} it is fixed"
    assert f"fixed 72.9 {dash} {dash} 68.3 14.1 none p99 is over 0.1 s even" in section
    assert "LoadGen server: killed by signal 9" in section


def of_images(entry, samples):
    """The entry as it would be of the model of images, whose split has 512."""
    none = ("gain", "padding_gain", "padding_share", "changed")
    row = {**entry["rows"][1], **dict.fromkeys(none), **NONE}
    size = {"height": 64, "width": 48, "longest": None, "samples": samples}
    empty = {"lengths": {"tokens": [], "samples": []}, "edges": []}
    return {**entry, **size, **empty, "model": "vit-tiny-photos", "rows": [row]}


def test_traffic_of_images_has_a_row_a_variant_and_nothing_of_tokens_and_padding(render, summary):
    summary["traffic"] += [of_images(entry, 512) for entry in summary["traffic"][:2]]
    outline = render(summary)
    text = outline.text.replace("\xa0", " ")
    texts, images = text[text.index("MLPerf LoadGen 6.0.17 sent the eval") :].split(" sent the 512")
    images = images[: images.index("Size, memory and time")]
    assert images.startswith(" evaluation images, each of 64 \N{MULTIPLICATION SIGN} 48 pixels.")
    assert "cpu-pytorch-fp32 135 8.10 12" in images and "cpu-onnxruntime-fp32 137 7.60 12" in images
    for word in ("token", "pad", "fixed", "Changed", "longest", "None"):
        assert word not in images and (word in texts) is (word != "None")
    assert sum(a.get("class") == "plot" for _, a in outline.tags) == 14


def test_images_that_are_not_all_sent_are_told_with_their_number(render, summary):
    summary["traffic"] = [of_images(summary["traffic"][0], 400)]
    assert "the first 400 of the 512 evaluation images, as many as" in render(summary).text


def test_a_model_whose_traffic_all_failed_has_the_reasons_and_no_table(render, summary):
    summary["traffic"] = [e for e in summary["traffic"] if e["status"] != "ok"]
    outline = render(summary)
    assert "Under real traffic minilm-docstrings Failed" in outline.text
    assert sum(a.get("class") == "plot" for _, a in outline.tags) == 13


def test_a_summary_without_traffic_has_no_section_on_it(render, summary):
    text = render({**summary, "traffic": []}).text
    assert "Real traffic" not in text and "LoadGen" not in text


def test_what_traffic_did_not_measure_is_a_dash(render, summary):
    entry = summary["traffic"][0]
    entry["lengths"] = {"tokens": [], "samples": []}
    for row in entry["rows"]:
        row.update(dict.fromkeys(("samples_per_s", "single_stream_p90_s", "gain", "changed")))
    text = render({**summary, "traffic": [entry]}).text
    assert "\N{EN DASH} no valid test" in text and "None" not in text


def test_a_gain_within_its_noise_is_a_tie_and_one_that_is_slower_is_marked(render, summary):
    fixed, longest, bucketed = summary["traffic"][0]["rows"]
    longest.update(gain=1.02, gain_low=0.9, gain_high=1.16, gain_verdict="tie")
    bucketed.update(gain=0.64, gain_low=0.6, gain_high=0.68, gain_verdict="slower")
    text = render(
        {**summary, "traffic": [{**summary["traffic"][0], "rows": [fixed, longest]}]}
    ).text
    assert "1.02\N{MULTIPLICATION SIGN} 0.90 to 1.16 tie" in text
    text = render(summary).text
    assert "0.64\N{MULTIPLICATION SIGN} 0.60 to 0.68 slower" in text


def test_a_disturbed_row_has_no_gain_and_says_how_to_measure_it_again(render, summary):
    for row in summary["traffic"][0]["rows"]:
        numbers = ("samples_per_s", "gain", "gain_low", "gain_high", "gain_verdict")
        row.update(dict.fromkeys(numbers), disturbed="other programs used up to 0.9 cores")
    text = render(summary).text
    section = text[text.index("MLPerf LoadGen 6.0.17 sent") : text.index("Size, memory and time")]
    assert "bucketed disturbed other programs used up to 0.9 cores" in section
    assert "snakemake --cores 1 --config remeasure=disturbed" in text


def test_why_no_rate_held_is_told_with_the_reason_of_its_own(render, summary):
    reason = "one long sample alone takes 0.3 s, the bound of p99 is 0.1 s"
    summary["traffic"][0]["rows"][0].update(server_per_s=None, server_reason=reason)
    assert f"none {reason}" in render(summary).text


def test_a_rate_that_was_not_asked_for_is_not_said_to_be_none(render, summary):
    for entry in summary["traffic"]:
        for row in entry["rows"]:
            row.update(server_per_s=None, server_reason=None)
    text = render(summary).text
    table = text[text.index("Under real traffic") : text.index("Offline and single stream are")]
    assert "none" not in table and "\N{EN DASH} not measured" in table


def test_what_failed_under_traffic_is_told_at_the_top_and_among_what_could_not_run(render, summary):
    summary["results"] = [r for r in summary["results"] if r["status"] == "ok"]
    text = render(summary).text
    assert "26 measured, 1 failed under real traffic" in text
    assert "Everything that was asked for ran" not in text
    steady = [entry for entry in summary["traffic"] if entry["status"] == "ok"]
    assert "Everything that was asked for ran" in render({**summary, "traffic": steady}).text


def answers_part(text):
    start = text.index("Changed answers Each variant paired with")
    return text[start : text.index("INT8 Integers of 8 bits")]


def test_each_variant_stands_beside_the_answers_of_its_baseline(render, summary):
    section = answers_part(render(summary).text).replace("\xa0", " ")
    assert "cpu-pytorch-fp32 78.3 the baseline" in section
    minus = "\N{MINUS SIGN}"
    assert f"bf16 78.4 +0.1 {minus}0.3 to +0.5 kept 0.73 0.6 9 3 5 99.4 0.71 0.031" in section
    assert (
        f"{minus}4.9 {minus}6.3 to {minus}3.4 dropped < 0.001 2.2 139 100 27 90.7 25 52" in section
    )


def test_a_split_that_is_too_small_for_the_budget_is_told_with_what_it_could_find(render, summary):
    section = answers_part(render(summary).text)
    told = "cpu-onnxruntime-int8-minmax-512-smooth : smallest drop detectable with 80 % power: 1.4 "
    assert f"cpu-onnxruntime-int8-dynamic , {told}points, more than the budget of 1.0." in section
    assert section.count("smallest drop detectable with 80 % power: ") == 7
    for result in summary["results"]:
        if result["accuracy"]:
            result["accuracy"]["large_enough"] = True
    assert "smallest drop detectable with 80 % power: " not in render(summary).text


def test_a_drop_that_is_just_too_large_to_find_is_not_told_as_the_budget_itself(summary):
    result = summary["results"][1]
    result["accuracy"].update(detectable=0.01004, large_enough=False)
    ((sentence, variants),) = answers_section([result], {}, 1.0)["too_small"]
    assert sentence == (
        "smallest drop detectable with 80 % power: 1.1 points, more than the budget of 1.0"
    )
    assert variants == ["cpu-pytorch-bf16"]
    assert answers_section([result], {}, None)["too_small"] == []


PICTURE = "data:image/jpeg;base64,/9j/4AAQ"


def test_changed_answers_of_images_have_thumbnails(render, summary):
    assert not [tag for tag, _ in render(summary).tags if tag == "img"]
    model = summary["models"]["minilm-docstrings"]
    flipped = summary["results"][1]["accuracy"]["flipped"]
    first, second = (str(example["index"]) for example in flipped[:2])
    model["thumbnails"] = {first: PICTURE, second: "http://example.org/a.png"}
    outline = render(summary)
    pictures = [a for tag, a in outline.tags if tag == "img"]
    assert pictures and {a["src"] for a in pictures} == {PICTURE}
    assert {a["alt"] for a in pictures} == {f"example {first}"}
    assert "Example Image Name Label" in outline.text


def test_a_poor_baseline_is_remarked_under_the_recommendation(render, summary):
    words = "The baseline itself is poor: its accuracy is 78.3 % ("
    assert words not in render(summary).text
    summary["models"]["minilm-docstrings"]["chance"] = 0.77
    text = render(summary).text
    assert text.count(words) == 1
    assert text.index(words) < text.index("Accuracy against latency")


def test_changed_answers_are_told_with_the_one_that_was_right(render, summary):
    section = answers_part(render(summary).text)
    assert "9 changed answers of cpu-pytorch-bf16" in section
    whole = "268 Whether all elements are finite. torch torch (right) 0.041 pandas 0.0087"
    assert whole in section
    both_wrong = "1187 Solve the linear system for several right-hand sides. scipy torch 0.0026"
    assert f"{both_wrong} pandas 0.014" in section
    # 3 and 5 right answers of the baseline, 5 and 11 of the variants
    assert section.count("(right)") == 24


def test_where_more_changed_than_are_listed_it_says_so(render, summary):
    summary["results"][1]["accuracy"]["flips"] = 1200
    section = answers_part(render(summary).text)
    assert "1,200 changed answers of cpu-pytorch-bf16 The 9 of which the baseline was" in section
    assert section.count("of which the baseline was surest") == 1


def test_a_changed_answer_without_a_text_has_a_dash_in_its_place(render, summary):
    summary["results"][1]["accuracy"]["flipped"][0].update(text=None, label=2, baseline=2)
    section = answers_part(render(summary).text)
    assert "268 \N{EN DASH} no text 2 2 (right) 0.041 pandas" in section


def test_a_summary_of_before_these_fields_has_dashes_in_their_place(render, summary):
    known = {"top1", "low", "high", "samples", "delta", "delta_low", "delta_high", "verdict"}
    for result in summary["results"]:
        if result["accuracy"]:
            result["accuracy"] = {key: result["accuracy"][key] for key in known}
    section = answers_part(render(summary).text)
    assert "kept" + " \N{EN DASH} not compared" * 8 in section
    assert "None" not in section and "changed answers of" not in section


def test_a_model_without_labels_has_no_table_of_answers(summary):
    judged = {model["name"]: model["answers"] for model in sections(summary)["models"]}
    assert judged["vit-tiny-photos"] is None
    assert len(judged["minilm-docstrings"]["rows"]) == 20


def int8_part(text):
    return text[text.index("INT8 Integers of 8 bits") : text.index("Under real traffic")]


def test_each_quantized_variant_stands_with_its_calibration_its_answers_and_its_audit(
    render, summary
):
    section = int8_part(render(summary).text)
    dash, minus = "\N{EN DASH}", "\N{MINUS SIGN}"
    change = f"+0.1 {minus}0.8 to +1.1 96.1 kept passed 20.0"
    smooth = "int8-minmax-512-smooth minmax 512 smooth"
    assert f"{smooth} {change} bert. encoder. layer. 3. output. dense" in section
    dynamic = f"cpu-onnxruntime-int8-dynamic {dash} ranges are found at run time {dash} ranges"
    assert dynamic in section
    assert f"cpu-openvino-int8-nncf-512 nncf 512 {dash} none +0.4" in section
    why = "collapsed collapsed: one answer to 98 % of 128 examples; at fault: operator bert."
    assert f"{minus}58.7 {minus}61.5 to {minus}55.8 20.6 dropped {why}" in section


def test_what_int8_auto_left_in_float_is_told_with_every_trial(render, summary):
    section = int8_part(render(summary).text)
    left = "SmoothQuant 0.8; 2 of 38 operators stay in float"
    told = f"{left}; 4 trials on 1,024 calibration examples in 28 s."
    assert f"cpu-onnxruntime-int8-auto-minmax-512 : {told}" in section
    assert "in 28 s. bert.encoder.layer.3.output.dense bert.encoder.layer.4.output" in section
    minus, dash = "\N{MINUS SIGN}", "\N{EN DASH}"
    assert (
        f"1 {dash} none 0 {minus}1.7 {minus}3.4 to +0.1 88 undecided 2 0.8 0 {minus}0.9" in section
    )


def test_a_search_that_left_nothing_in_float_and_one_calibration_are_a_line_each(render, summary):
    (auto,) = [one for one in summary["results"] if one["search"]]
    auto["search"]["in_float"] = []
    section = int8_part(render(summary).text)
    said = "none of 38 operators stays in float; 4 trials on 1,024 calibration examples in 28 s."
    assert f"{auto['variant']} : SmoothQuant 0.8; {said} Sensitivity of" in section
    assert "What int8-auto left in float" not in section
    change = "int8 +0.4 points (\N{MINUS SIGN}0.2 to +1.0), 98.9 % agreement with fp32; int8-bf16"
    assert f"openvino: one calibration, nncf on 512 samples: {change}" in section


def test_the_table_of_sensitivities_says_what_stays_in_float(render, summary):
    section = int8_part(render(summary).text)
    assert "u8s8-minmax-512 38 operators on 128 examples" in section
    first, second = (f"bert.encoder.layer.{layer}.output.dense" for layer in (3, 4))
    assert f"{first} 13 7.0 93.0 27.6 in float {second} 4.8" in section.replace("\xa0", " ")
    assert section.count("in float bert.encoder") == 2


def test_that_accuracy_does_not_carry_over_is_told_once_and_only_of_vnni(render, summary):
    told = "does not carry over to an x86 CPU without it"
    assert render(summary).text.count(told) == 1
    (host,) = summary["hosts"].values()
    host["isa"] = ["avx2", "avx512f"]
    assert told not in render(summary).text


def test_a_summary_of_before_audits_and_searches_still_has_its_calibrations(render, summary):
    for result in summary["results"]:
        del result["audit"], result["search"]
    for model in summary["models"].values():
        del model["sensitivity"]
    section = int8_part(render(summary).text)
    assert section.count("not audited") == 13 and section.count("not known") == 26
    assert "All 9 as a table" in section and "None" not in section
    assert "left in float" not in section and "Sensitivity of operators" not in section


def test_without_int8_there_is_no_section_on_it(render, summary):
    summary["results"] = [r for r in summary["results"] if "int8" not in r["precision"]]
    summary["quantization"] = []
    outline = render(summary)
    assert not any(a.get("id") == "int8" or a.get("href") == "#int8" for _, a in outline.tags)
    assert "cpu-openvino-bf16" in outline.text


def on_another_host(summary, host):
    """Add `host`, where cpu-openvino-bf16 was measured and is recommended."""
    summary["hosts"]["0123456789ab"] = host
    for result in summary["results"] + summary["traffic"]:
        if result["variant"] == "cpu-openvino-bf16":
            result["host"] = "0123456789ab"
    first = summary["recommendations"][0]
    other = {**first, "host": "0123456789ab", "variant": "cpu-openvino-bf16"}
    summary["recommendations"].append(other)


def test_with_several_hosts_each_recommendation_row_and_figure_names_its_own(render, summary):
    card = {"gpu": "NVIDIA H100", "driver": "580.65.06", "gpu_uuids": ["GPU-aaaa-1111"]}
    on_another_host(summary, {"cpu": "AMD EPYC", **card})
    text = render(summary).text.replace("\xa0", " ")
    for name in ("Intel(R) Xeon(R) Platinum 8488C", "AMD EPYC + NVIDIA H100"):
        assert f"batch 1 \N{MIDDLE DOT} 64 tokens on {name}" in text
        assert text.count(f"batch 1 \N{MIDDLE DOT} 64 tokens \N{MIDDLE DOT} {name}") >= 2
    assert "cpu-openvino-bf16 on AMD EPYC + NVIDIA H100" in text
    assert "cpu-openvino-bf16 minilm-docstrings AMD EPYC + NVIDIA H100" in text
    assert "It depends on the shape and the host" in text
    assert "NVIDIA H100, driver 580.65.06, GPU-aaaa-1111" in text


def test_times_of_two_hosts_are_never_in_one_figure(summary):
    on_another_host(summary, {"cpu": "AMD EPYC"})
    model = sections(summary)["models"][0]
    for figure in model["trade_offs"]:
        assert len({point["result"]["host"] for point in figure["points"]}) == 1


def test_hosts_that_look_alike_are_told_apart_by_their_fingerprints(summary):
    on_another_host(summary, dict(summary["hosts"]["5c1f0a77d2e9"]))
    names = sections(summary)["host_names"]
    assert names["0123456789ab"] == "Intel(R) Xeon(R) Platinum 8488C (0123456789ab)"
    assert len(set(names.values())) == 2


def test_one_host_is_not_named_beside_each_recommendation(render, summary):
    assert "64\xa0tokens on " not in render(summary).text


def test_the_variant_with_the_highest_throughput_comes_first(summary):
    found = traffic_section(summary["traffic"])
    assert [entry["variant"] for entry in found["entries"]][:2] == [
        "cpu-openvino-int8-bf16-nncf-512",
        "cpu-openvino-bf16",
    ]
    assert traffic_section([]) is None


def test_the_histogram_in_words_has_the_share_of_each_bucket(summary):
    (figure,) = traffic_section(summary["traffic"])["figures"]
    shares = [float(share) for share in re.findall(r"([\d.]+) % from", figure["description"])]
    assert len(shares) == 4 and sum(shares) == pytest.approx(100, abs=0.2)


def test_a_gain_has_two_digits():
    assert (gain(2.314), gain(0.967)) == (
        "2.3\N{MULTIPLICATION SIGN}",
        "0.97\N{MULTIPLICATION SIGN}",
    )
    assert gain(None) is None


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


def test_a_size_in_points_is_rounded_up():
    assert (points_up(0.01001, 1500), points_up(0.014, 1500)) == ("1.1", "1.4")
    assert (points_up(0.003, 50), points_up(0.00123, 20_000)) == ("1", "0.13")
    assert points_up(None) is None


def test_a_number_below_its_floor_is_told_as_that():
    assert (bounded(4.7e-11, 0.001), bounded(0.00123, 0.001)) == ("<\xa00.001", "0.0012")
    assert (bounded(0.00712, 0.01, 100), bounded(1e-7, 0.01, 100)) == ("0.71", "<\xa00.01")
    assert (bounded(0, 0.01), bounded(None, 0.01)) == ("0", None)


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


def test_a_padded_shape_is_told_from_the_full_one():
    full, padded = {"batch": 16, "sequence": 128}, {"batch": 16, "sequence": 128, "tokens": 64}
    assert shape_of(padded) != shape_of(full)
    told = shape_label(shape_of(padded)).replace("\xa0", " ")
    assert told == "batch 16 \N{MIDDLE DOT} 64 of 128 tokens"


def test_a_variant_with_few_products_in_its_precision_is_marked():
    counts = {"MatMul": {"int8": 36, "fp32": 14}, "Softmax": {"fp32": 90}}
    assert products(counts, "int8") == "int8 in 36 of 50"
    assert products(counts, "int8-bf16") == "int8 in 36 of 50"
    assert products(None, "int8") is None
    assert [mostly_elsewhere(counts, one) for one in ("int8", "fp32")] == [False, True]
    assert not mostly_elsewhere(None, "int8")


def test_executed_operators_are_summed_by_precision():
    counts = {"MatMul": {"int8": 36, "fp32": 12}, "Softmax": {"fp32": 30}}
    assert executed(counts) == "fp32 42, int8 36"
    assert executed(None) is None


def test_times_on_a_gpu_are_a_column_where_there_are_some(render, summary):
    title = "On the GPU, ms"
    assert title not in render(summary).text
    row = next(row for result in summary["results"] for row in result["latency"])
    row["device_p50_s"] = 0.01234
    page = render(summary)
    assert title in page.text
    assert "12.3" in page.text
    assert "without the copies of inputs and logits" in page.text


def test_energy_is_a_column_where_some_is_known(render, summary):
    title = "mJ per inference"
    assert title not in render(summary).text
    result = next(result for result in summary["results"] if result["latency"])
    result["latency"][0]["energy_j"] = 0.01234
    page = render(summary)
    assert title in page.text and "12.3" in page.text
    assert "An inference is one call, of the whole batch" in page.text


def test_the_gpu_is_told_under_steadiness_and_its_memory_among_the_costs(render, summary):
    before = render(summary).text
    assert "GPU memory, MB" not in before and "GPU clocks" not in before
    assert "or the GPU was throttled" not in before
    result = next(result for result in summary["results"] if result["latency"])
    result["latency"][0]["gpu"] = {**GPU, "throttled": ["power cap"]}
    page = render(summary)
    assert page.text.count("GPU memory, MB") == 1, "in the table of that model alone"
    assert "3,120" in page.text
    assert "GPU clocks not locked" in page.text
    assert "or the GPU was throttled or shared, while it was timed" in page.text
    assert "GPU throttled: power cap (1 of 1 rows)" in page.text


def test_a_row_with_unknown_energy_and_gpu_reads_as_before(render, summary):
    before = render(summary)
    for result in summary["results"]:
        for row in result["latency"]:
            row.update(energy_j=None, gpu=None)
    after = render(summary)
    assert (after.text, after.tags) == (before.text, before.tags)


def test_several_streams_are_a_table_where_they_were_measured(render, summary):
    title = "Several streams on the GPU"
    assert title not in render(summary).text
    result = next(result for result in summary["results"] if result["latency"])
    ends = {"low": 1490.0, "high": 1510.0, "blocks": 10, "reason": None}
    rates = [{"streams": 2, "throughput_per_s": 1500.0, **ends}]
    rates += [{**dict.fromkeys(rates[0]), "streams": 4, "blocks": 0, "reason": "out of memory"}]
    result["latency"][0]["streams"] = {"rates": rates, "best": 2}
    page = render(summary)
    assert title in page.text
    assert "2 streams" in page.text and "4 streams" in page.text
    assert "1,500 best 1,490 to 1,510" in page.text
    assert "out of memory" in page.text
