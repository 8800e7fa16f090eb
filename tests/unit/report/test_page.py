"""The report as a file: what it says, and that nothing in it can act."""

import json
import re

import pytest
from gpu_states import GPU
from msgspec.structs import replace
from page_parts import PARTS
from report_pages import EXAMPLE, MODEL, example, page_of, summary_of
from tightrope.decide.result import Accuracy
from tightrope.errors import ArtifactError
from tightrope.report.page import host_names, render_page, sections
from tightrope.report.sections.figures import number_front, trade_offs
from tightrope.report.sections.steadiness import disturbed_section, remarks

ATTACK = '</script><script>window.owned = true</script><img src=x onerror="owned=1">'
HOSTILE = {"code": "failed", "values": {"reason": ATTACK}}
CHOSEN = "the fastest of the 13 variants that keep the accuracy"
COMMAND = "snakemake --cores 1 --config remeasure=disturbed"
MINUS, TIMES = "\N{MINUS SIGN}", "\N{MULTIPLICATION SIGN}"
DASH, DOT = "\N{EN DASH}", "\N{MIDDLE DOT}"
PICTURE = "data:image/jpeg;base64,/9j/4AAQ"
OTHER_HOST = "0123456789ab"


@pytest.fixture
def summary():
    return example()


def rows_of(summary):
    return [row for result in summary["results"] for row in result["latency"]]


def judged(summary):
    """The section of the model that has labels."""
    return next(one for one in sections(summary_of(summary))["models"] if one["judged"])


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


def test_text_from_the_summary_never_becomes_markup(summary):
    disturb(summary, "cpu-openvino-bf16", disturbed=ATTACK)
    summary["races"][0].update(status="disturbed", variant=None, reason=ATTACK)
    summary["models"][ATTACK] = summary["models"].pop("minilm-docstrings")
    summary["hosts"][ATTACK] = {"cpu": ATTACK, "libraries": {ATTACK: ATTACK}, "isa": [ATTACK]}
    for entry in summary["results"] + summary["recommendations"]:
        entry["model"] = ATTACK if entry["model"] == "minilm-docstrings" else entry["model"]
    for result in summary["results"][:3]:
        result.update(variant=ATTACK, engine=ATTACK, precision=ATTACK, measured=ATTACK)
        result["latency"][0].update(noisy=True, noise=[ATTACK])
    summary["recommendations"][0].update(variant=ATTACK, why=HOSTILE)
    summary["recommendations"][1].update(provisional=True, disturbed=[ATTACK], equal=[ATTACK])
    for entry in summary["studies"]["traffic"]:
        entry.update(model=ATTACK, variant=ATTACK, reason=ATTACK, words=[ATTACK])
    for row in summary["studies"]["traffic"][0]["rows"]:
        row.update(padding=ATTACK, disturbed=ATTACK)
    for one in summary["results"][1]["accuracy"]["flipped"]:
        one.update(text=ATTACK, label=ATTACK, baseline=ATTACK, prediction=ATTACK)
    for entry in summary["quantization"]:
        entry.update(model=ATTACK, engine=ATTACK, variant=ATTACK, unquantized=ATTACK, why=[HOSTILE])
        entry.update(verdict="do not quantize", failed=ATTACK, host=ATTACK)
    auto = next(r for r in summary["results"] if r["search"])
    auto["search"].update(in_float=[ATTACK])
    auto.update(variant=ATTACK, calibration=f"{ATTACK.replace('-', '')}-7-{ATTACK}", engine=ATTACK)
    (sensitivity,) = summary["models"][ATTACK]["sensitivity"].values()
    sensitivity["operators"][0]["operator"] = ATTACK
    summary["models"][ATTACK]["sensitivity"] = {ATTACK: sensitivity}
    outline = page_of(summary)
    kinds = [attributes.get("type") for tag, attributes in outline.tags if tag == "script"]
    assert kinds == ["application/json", "module", "module"]
    assert not any(tag == "img" or "onerror" in attributes for tag, attributes in outline.tags)
    assert outline.part("answers").count(ATTACK) >= 4 * 9  # each field of the changed answers
    assert outline.part("int8").count(ATTACK) >= 8 + 4 * 10
    assert outline.text.count(f"disturbed {ATTACK}") == 3
    json.loads(outline.scripts[0])


def test_the_page_names_no_address_to_load_from_and_forbids_loading(summary):
    outline = page_of(summary)
    places = [a.get("src") or a.get("href") for _, a in outline.tags if "src" in a or "href" in a]
    assert all(place.startswith(("#", "data:")) for place in places)
    policy = next(a["content"] for _, a in outline.tags if "http-equiv" in a)
    assert policy.startswith("default-src 'none'") and "unsafe-eval" not in policy


def test_each_chart_has_words_and_a_table_beside_it(summary):
    outline = page_of(summary)
    figures = [a for tag, a in outline.tags if tag == "figure"]
    # one figure has a panel for the accuracy and one for the agreement
    assert (len(outline.plots()), len(figures)) == (6, 5)
    assert all(len(plot["aria-label"]) > 50 for plot in outline.plots())
    assert len(re.findall(r"All \d+ as a table", outline.text)) == len(figures)


CUT = (
    "37 of 1,500 evaluation texts were cut at max_sequence = 128 tokens; "
    "1,284 of 10,000 train texts were cut at train.sequence = 64 tokens"
)
VNNI = "does not carry over to an x86 CPU without it"
POOR = "The baseline itself is poor: its accuracy is 78.3 % ("
SMALLEST = "smallest drop detectable with 80 % power: "
# what the page of the example says in its parts; a pair of words and a number as often
SAID = {
    None: [
        *["4.16 to 4.54 faster", f"{MINUS}0.2 to +0.8 kept", f"{DASH} too few samples"],
        "no labels: accuracy was not evaluated",
        "noisy the engine that was not timed used 6 % of a core",
        "noisy : other programs used up to 0.7 cores of its processors",
        *["9 of 92 rows noisy"],
        "time limit stopped at the time limit: the interval is wider than asked for",
        *["3 rows stopped at the time limit", "latency.comparison_seconds narrows them"],
        # what not to quantize stands under what to deploy
        *[f"onnxruntime is slower with int8-dynamic than with fp32 (0.79{TIMES} at best)."],
        ("Do not quantize this one:", 1),
        f"onnxruntime batch 1 {DOT} 64 tokens quantize cpu-onnxruntime-int8-dynamic 2.61{TIMES} "
        f"fp32 2.58 to 2.64 +0.4 {MINUS}0.5 to +1.3 58 of 1,500 faster than "
        "cpu-onnxruntime-fp32; accuracy kept 10 others",
        *[f"openvino batch 16 {DOT} 128 tokens undecided", f"0.98{TIMES} bf16 0.95 to 1.01"],
        "cpu-onnxruntime-int8-random-512 do not quantize : failed: collapsed: one answer",
        "slower than cpu-onnxruntime-fp32; accuracy was not evaluated: speed alone decides",
        # variants of as many busy threads are named once
        "cpu-inductor-bf16 kept 3 threads busy, 2 were configured; cpu-onnxruntime-int8-dynamic "
        "kept 1 of 2 threads busy.",
        *[(CUT, 2), (VNNI, 1)],
        # what is told only where there is something to tell
        *((word, 0) for word in ("Provisional:", COMMAND, POOR, "64 tokens on ", "GPU memory, MB")),
        *((word, 0) for word in ("GPU clocks", "or the GPU was throttled", "On the GPU, ms")),
        *((word, 0) for word in ("mJ per inference", "Several streams", "Break-even")),
    ],
    "not-run": [
        ("no NVIDIA GPU on this machine", 1),
        "cuda-tensorrt-fp16 cuda-tensorrt-int8-fp16-entropy-512",
    ],
    "traffic": [
        *["sent 1,500 texts of 7 to 128 tokens", "% have 25 to 48 tokens. "],
        *["takes all to 128 tokens", "batches of up to 32, with 2 threads", "to be within 100 ms"],
        f"bucketed 692 2.11{TIMES} 2.03 to 2.19 faster 2.39{TIMES} 24.3 2.50 270 4 1 16",
        f"to 1.00 1.00{TIMES} 68.3 14.1 {DASH} not recorded 0 0 p99 is over 0.1 s even at 4.5",
        "LoadGen server: killed by signal 9",
    ],
    "answers": [
        *[f"minilm-docstrings {CUT}.", ("texts were cut", 2)],
        "cpu-pytorch-fp32 78.3 the baseline",
        f"bf16 78.4 +0.1 {MINUS}0.3 to +0.5 kept 0.73 0.6 9 3 5 99.4 0.71 0.031",
        f"{MINUS}4.9 {MINUS}6.3 to {MINUS}3.4 dropped < 0.001 2.2 139 100 27 90.7 25 52",
        "cpu-onnxruntime-int8-dynamic , cpu-onnxruntime-int8-minmax-512-smooth : "
        f"{SMALLEST}1.4 points, more than the budget of 1.0.",
        (SMALLEST, 7),
        "9 changed answers of cpu-pytorch-bf16",
        "268 Whether all elements are finite. torch torch (right) 0.041 pandas 0.0087",
        "1187 Solve the linear system for several right-hand sides. scipy torch 0.0026 pandas 0.01",
        # 3 and 5 right answers of the baseline, 5 and 11 of the variants
        ("(right)", 24),
    ],
    "int8": [
        # repairs are in the table of all variants alone
        "All 9 as a table Variant Method Samples Change Agreement cpu-onnxruntime-int8-entropy-32 "
        f"entropy 32 {MINUS}7.1 points ({MINUS}8.7 to {MINUS}5.5) 88.5 % "
        "cpu-onnxruntime-int8-entropy-128 entropy 128 ",
        f"minmax 512 {MINUS}1.8 points ({MINUS}3.2 to {MINUS}0.4) 91.3 % "
        "cpu-onnxruntime-int8-percentile-512 percentile 512",
        f"int8-minmax-512-smooth minmax 512 smooth +0.1 {MINUS}0.8 to +1.1 96.1 kept",
        f"int8-dynamic {DASH} ranges are found at run time {DASH} ranges",
        f"cpu-openvino-int8-nncf-512 nncf 512 {DASH} none +0.4",
        f"{MINUS}58.7 {MINUS}61.5 to {MINUS}55.8 20.6 dropped",
        "int8-auto-minmax-512 : SmoothQuant 0.8; 2 of 38 operators stay in float; 4 trials on "
        "1,024 calibration examples in 28 s. bert.encoder.layer.3.output.dense bert.enc",
        f"1 {DASH} none 0 {MINUS}1.7 {MINUS}3.4 to +0.1 88 undecided 2 0.8 0 {MINUS}0.9",
        "u8s8-minmax-512: the mean divergence of the answers with one operator in INT8 from those",
        "layer.3.output.dense 13 7.0 93.0 27.6 in float bert.encoder.layer.4.output.dense 4.8",
        ("in float bert.encoder", 2),
    ],
}


def check(text, words, unsaid=()):
    """Assert that a text has these words, a pair of words and a number as often, and no others."""
    pairs = [one if isinstance(one, tuple) else (one, None) for one in words]
    found = {one: text.count(one) for one, _ in pairs}
    wrong = [
        one for one, times in pairs if found[one] != times and not (times is None and found[one])
    ]
    assert (wrong, [one for one in unsaid if one in text]) == ([], [])


@pytest.mark.parametrize("part", SAID)
def test_the_page_says(summary, part):
    check(page_of(summary).part(part), SAID[part])


def test_the_recommendation_comes_first_with_its_reason(summary):
    text = page_of(summary).text
    assert text.index("What to deploy") < text.index("cpu-openvino-int8-bf16-nncf-512")
    assert CHOSEN in text
    assert not [tag for tag, _ in page_of(summary).tags if tag == "img"]
    assert disturbed_section(summary_of(summary)) is None
    # what was not measured has no section
    studies = ("causes", "family", "idleness", "profile", "throughput")
    assert {page_of(summary).section(name) for name in studies} == {""}


CASES = []


def says(*words, unsaid=(), **parts):
    """Have the page of a summary that the function changed say these words, and not the others.

    A pair of words and a number is said as often; `parts` are words of these parts of the page.
    """

    def case(change):
        CASES.append(pytest.param(change, {None: words, **parts}, unsaid, id=change.__name__))
        return change

    return case


def accuracies(summary):
    return [result["accuracy"] for result in summary["results"] if result["accuracy"]]


@says("Nothing can be recommended.", "no variant keeps the accuracy", "undecided", unsaid=["None"])
def nothing_qualifies_and_no_change_of_accuracy_is_known(summary):
    for entry in summary["recommendations"]:
        entry.update(variant=None, why={"code": "none_kept"})
    unknown = dict.fromkeys(["delta", "delta_low", "delta_high", "flips", "p_value"])
    for accuracy in accuracies(summary):
        accuracy |= {**unknown, "verdict": "undecided"}


@says(
    *["Nothing can be recommended. Nothing was measured.", "killed: out of memory"], unsaid=["INT8"]
)
def all_failed(summary):
    empty = {"accuracy": None, "latency": [], "size_bytes": None, "search": None}
    for result in summary["results"]:
        result.update(empty, status="failed", reason="killed: out of memory")
    summary.update(recommendations=[], studies={}, quantization=[])


def disturb(summary, variant, place=0, **changes):
    """Have other load disturb a row of that variant, and what it has no numbers for."""
    result = next(one for one in summary["results"] if one["variant"] == variant)
    lost = {"ratio": None, "low": None, "high": None, "verdict": "disturbed"}
    empty = dict.fromkeys(("p50_s", "p90_s", "p99_s", "mean_s", "paired_s"))
    row = {"disturbed": f"{variant}: only 2 of 12", "speedup": lost, **empty, "samples": 0}
    result["latency"][place].update(row | changes)


@says(
    "Other load disturbed 2 of 92 latencies. They have no numbers, and no choice depends",
    *["disturbed cpu-openvino-bf16: only 2 of 12", "LoadGen server: killed by signal 9"],
    unsaid=["Provisional:", "as many as"],
)
def rows_are_disturbed_that_could_change_no_choice(summary):
    disturb(summary, "cpu-openvino-bf16")
    disturb(summary, "cpu-compile-bf16")
    studies = summary["studies"]
    studies["traffic"] = [one for one in studies["traffic"] if one["status"] != "ok"]


RACE = "other load disturbed the race: 4 of 24 rounds are left; the busiest: python3 train.py"
LOADED = "provisional : other load disturbed"


@says(
    *["disturbed 1 of 92 latencies and the decision at 1 shape. ", RACE],
    *["disturbed cpu-pytorch-fp32: only 2 of 12", f"{LOADED} cpu-openvino-bf16 "],
    *[f"{LOADED} 3 variants that keep the accuracy", f"{LOADED} what it rests on"],
    unsaid=["None"],
)
def a_race_and_the_baseline_are_disturbed(summary):
    disturb(summary, "cpu-pytorch-fp32")
    summary["results"][0]["latency"][0]["speedup"] = None
    summary["races"][0].update(status="disturbed", variant=None, reason=RACE)
    first, *others = summary["recommendations"]
    first.update(variant=None, why={"code": "disturbed", "values": {"why": RACE}}, provisional=True)
    for entry, names in zip(others, (["cpu-openvino-bf16"], list("abc"), []), strict=False):
        entry.update(provisional=True, disturbed=names)


@says("Their numbers are given all the same, as configured.", "provisional only 2 of 12")
def disturbed_numbers_are_accepted(summary):
    row = summary["results"][1]["latency"][0]
    row.update(disturbed="only 2 of 12", provisional=True)
    result = summary_of(summary).results[1]
    assert [one.word for one in remarks(result, result.latency[0])] == ["provisional"]


@says(
    *["None of 92 rows noisy", "None of the rows stopped at the time limit"],
    "Everything that was asked for ran",
    unsaid=[
        *["disturbed by other load", "than configured", "changed its speed by"],
        *["were cut at", SMALLEST, VNNI, "mJ per inference", "GPU clocks", "GPU memory, MB"],
    ],
)
def all_is_well(summary):
    for lists, key in ((summary, "results"), (summary["studies"], "traffic")):
        lists[key] = [one for one in lists[key] if one["status"] == "ok"]
    for row in rows_of(summary):
        row.update(noisy=False, noise=[], stop="width", disturbed_pairs=0, threads_busy=2)
        row.update(machine_spread=0.0199, energy_j=None, gpu=None)
    for model in summary["models"].values():
        model["truncation"] = {}
    for accuracy in accuracies(summary):
        accuracy["large_enough"] = True
    (host,) = summary["hosts"].values()
    host["isa"] = ["avx2", "avx512f"]


@says(
    *["1 pair of blocks disturbed by other load", "The machine changed its speed by 13 % "],
    *[("baseline: killed by signal 9", 1), "the baseline could not be measured", (POOR, 1)],
    "the first 400 of 512 images",
    # a drop that is just too large to find is not told as the budget itself
    f"cpu-pytorch-bf16 , cpu-onnxruntime-int8-auto-minmax-512 : {SMALLEST}1.1 points, more than",
)
def much_is_worse(summary):
    for row in rows_of(summary):
        row["disturbed_pairs"] = 0
    rows_of(summary)[0].update(disturbed_pairs=1, machine_spread=0.129)
    for result in summary["results"]:
        if result["model"] == "vit-tiny-photos":
            result["baseline_failed"] = "baseline: killed by signal 9"
            for row in result["latency"]:
                row["speedup"] = None
    summary["models"][MODEL]["chance"] = 0.77
    summary["results"][1]["accuracy"].update(detectable=0.01004, large_enough=False)
    summary["studies"]["traffic"] = [of_images(summary["studies"]["traffic"][0])]


def of_images(entry):
    """The entry as it would be of the model of images."""
    none = ("gain", "gain_verdict", "padding_gain", "padding_share", "changed", "ties_changed")
    row = {**entry["rows"][1], **dict.fromkeys(none), "padding": "none"}
    size = {"shape": {"height": 64, "width": 48}, "words": ["It sent the first 400 of 512 images."]}
    return {**entry, **size, "model": "vit-tiny-photos", "rows": [row]}


NO_RATE = "one long sample alone takes 0.3 s, the bound of p99 is 0.1 s"


@says(
    *["26 measured, 1 failed in studies", "2 rows of traffic"],
    unsaid=["Everything that was asked for ran"],
    traffic=[
        *[f"1.02{TIMES} 0.90 to 1.16 tie", f"0.64{TIMES} 0.60 to 0.68 slower"],
        *[f"{DASH} not recorded 0 0 {NO_RATE} 16", f"{DASH} other programs used up to 0.9 cores"],
    ],
)
def traffic_is_disturbed_measured_nothing_and_gained_nothing(summary):
    summary["results"] = [one for one in summary["results"] if one["status"] == "ok"]
    first, second = (entry["rows"] for entry in summary["studies"]["traffic"][:2])
    first[0].update(server_per_s=None, server_reason=NO_RATE)
    gains = ({"value": 1.02, "low": 0.9, "high": 1.16}, {"value": 0.64, "low": 0.6, "high": 0.68})
    first[1].update(gain=gains[0], gain_verdict="tie")
    first[2].update(gain=gains[1], gain_verdict="slower")
    for row in second[1:]:
        row.update(dict.fromkeys(("samples_per_s", "gain", "gain_verdict")))
        row.update(disturbed="other programs used up to 0.9 cores")


@says(
    ("configured by config/config.yaml , config/mine.yaml", 2),
    "snakemake --cores 1 artifacts/minilm-docstrings/bundle/cpu-openvino-int8-bf16-nncf-512.tar.gz "
    "--configfile config/config.yaml config/mine.yaml or "
    "artifacts/minilm-docstrings/engines/cpu-openvino-int8-bf16-nncf-512/",
    unsaid=["What int8-auto left in float"],
    answers=[
        "1,200 changed answers of cpu-pytorch-bf16 The 9 of which the baseline was",
        ("of which the baseline was surest", 1),
        f"268 {DASH} no text 2 2 (right) 0.041 pandas",
    ],
    int8=[
        *[" : SmoothQuant 0.8; none of 38 operators stays in float; 4 trials on 1,024 "],
        f"openvino: one calibration, nncf on 512 samples: int8 +0.4 points ({MINUS}0.2 to +1.0), "
        "98.9 % agreement with fp32; int8-bf16",
    ],
)
def two_files_of_configuration_more_changed_than_are_listed_nothing_left_in_float(summary):
    summary["configuration"] = ["config/config.yaml", "config/mine.yaml"]
    accuracy = summary["results"][1]["accuracy"]
    accuracy["flips"] = 1200
    accuracy["flipped"][0].update(text=None, label=2, baseline=2)
    (auto,) = [one for one in summary["results"] if one["search"]]
    auto["search"]["in_float"] = []


@says(
    *["On the GPU, ms", "12.3", "“On the GPU” is without copies."],
    *["mJ per inference", "56.8", "Energy is that of all processors or of the whole GPU."],
    *[("GPU memory, MB", 1), "3,120", "GPU clocks not locked", "out of memory"],
    *["or the GPU was throttled or shared, while it was timed"],
    *["GPU throttled: power cap (1 of 1 rows)"],
    *["Several streams on the GPU", "2 streams 95 % interval 4 streams 95 % interval cpu-"],
    f"64 tokens 107 1,500 best 1,490 to 1,510 {DASH} out of memory {DASH} out of memory cpu-",
    f"1,500 best 1,490 to 1,510 {DASH} not measured {DASH} not measured",
    unsaid=["/bundle/"],
)
def a_row_was_timed_on_a_gpu_where_there_is_no_bundle(summary):
    for result in summary["results"]:
        result["device"] = "cuda"
    ends = {"low": 1490.0, "high": 1510.0, "blocks": 10, "reason": None}
    rates = [{"streams": 2, "throughput_per_s": 1500.0, **ends}]
    rates += [{**dict.fromkeys(rates[0]), "streams": 4, "blocks": 0, "reason": "out of memory"}]
    row, other = rows_of(summary)[:2]
    row.update(device_p50_s=0.01234, energy_j=0.05678, streams={"rates": rates, "best": 2})
    other["streams"] = {"rates": rates[:1], "best": 2}
    row["gpu"] = {**GPU, "throttled": ["power cap"]}


@pytest.mark.parametrize(("change", "words", "unsaid"), CASES)
def test_the_page_says_where(summary, change, words, unsaid):
    change(summary)
    page = page_of(summary)
    check(page.part(None), words[None], unsaid)
    for part in list(words)[1:]:
        check(page.part(part), words[part])
    assert not re.search(r"\b(None|nan) ?(ms|,|\)|to)", page.text)


def test_a_provisional_choice_has_a_banner_above_the_decision_with_the_command(summary):
    rows_are_disturbed_that_could_change_no_choice(summary)
    summary["recommendations"][0]["provisional"] = True
    text = page_of(summary).text
    banner = text[text.index("Provisional:") : text.index(COMMAND)]
    assert "Other load disturbed 2 of 92 latencies. They have no numbers" in banner
    assert text.index("What to deploy") < text.index("Provisional:")
    assert text.index(COMMAND) < text.index(CHOSEN)
    for remedy in ("threads one fewer", "--config 'latency={accept_disturbed: true}'"):
        assert remedy in text


def test_the_next_best_keeps_the_accuracy(summary):
    """A race also has the best quantized variant of an engine where its accuracy is dropped."""
    (first, *_), (race, *_) = summary["recommendations"], summary["races"]
    others = [one["other"] for one in race["ratios"] if one["variant"] == first["variant"]]
    told = judged(summary)["picks"][0]["next"]["variant"]
    assert told in others
    for result in summary["results"]:
        if (result["model"], result["variant"]) == (MODEL, told):
            result["accuracy"]["verdict"] = "dropped"
    assert judged(summary)["picks"][0]["next"]["variant"] not in (told, first["variant"])


def test_a_disturbed_row_draws_no_mark(summary):
    name = "cpu-openvino-bf16"
    disturb(summary, name)
    model = judged(summary)
    trade_off = model["trade_offs"][0]
    assert trade_off["unplaced"] == [name]
    assert name not in {point["variant"] for point in trade_off["points"]}
    assert name in {point["variant"] for point in model["trade_offs"][1]["points"]}


def test_of_a_model_without_data_or_checkpoint_the_page_says_why(summary):
    changes = {"model": "other", "status": "failed", "reason": "no room", "latency": []}
    summary["results"].append({**summary["results"][0], **changes})
    outline = page_of(summary)
    assert "no room" in outline.text
    # without a shape its row has no place among those with one
    assert '<td data-value="">' in outline.section("results").split("<td>other</td>")[1]


def test_traffic_of_images_has_a_row_a_variant_and_nothing_of_tokens_and_padding(summary):
    traffic = summary["studies"]["traffic"]
    traffic += [of_images(entry) for entry in traffic[:2]]
    outline = page_of(summary)
    texts, images = outline.part("traffic").split("It sent the first 400 of 512 images.")
    rows, _ = images.split("Offline and single stream are medians")
    size = f"64 {TIMES} 48 pixels none"
    assert f"cpu-pytorch-fp32 {size} 135 8.10 12 16" in rows
    assert f"cpu-onnxruntime-fp32 {size} 137 7.60 12 16" in rows
    for word in ("token", "fixed", "Changed", "None"):
        assert word not in rows and (word in texts) is (word != "None")


def test_changed_answers_of_images_have_thumbnails(summary):
    model = summary["models"][MODEL]
    flipped = summary["results"][1]["accuracy"]["flipped"]
    first, second = (str(example["index"]) for example in flipped[:2])
    model["thumbnails"] = {first: PICTURE, second: "http://example.org/a.png"}
    outline = page_of(summary)
    pictures = [a for tag, a in outline.tags if tag == "img"]
    assert pictures and {a["src"] for a in pictures} == {PICTURE}
    assert {a["alt"] for a in pictures} == {f"example {first}"}
    assert "Example Image Name Label" in outline.text


def on_another_host(summary, host):
    """Add `host`, where cpu-openvino-bf16 was measured and is recommended."""
    summary["hosts"][OTHER_HOST] = host
    few = {"cpu-pytorch-fp32", "cpu-onnxruntime-fp32", "cpu-openvino-bf16"}
    summary["results"] = [one for one in summary["results"] if one["variant"] in few]
    for result in summary["results"] + summary["studies"]["traffic"]:
        if result["variant"] == "cpu-openvino-bf16":
            result["host"] = OTHER_HOST
    other = {**summary["recommendations"][0], "host": OTHER_HOST, "variant": "cpu-openvino-bf16"}
    summary["recommendations"].append(other)


def test_with_several_hosts_each_recommendation_row_and_figure_names_its_own(summary):
    card = {"gpu": "NVIDIA H100", "driver": "580.65.06", "gpu_uuids": ["GPU-aaaa-1111"]}
    on_another_host(summary, {"cpu": "AMD EPYC", **card})
    text = page_of(summary).part(None)
    for name in ("Intel(R) Xeon(R) Platinum 8488C", "AMD EPYC + NVIDIA H100"):
        assert f"batch 1 {DOT} 64 tokens on {name}" in text
        assert f"batch 1 {DOT} 64 tokens {DOT} {name}" in text
    assert "cpu-openvino-bf16 AMD EPYC + NVIDIA H100" in text
    assert "cpu-openvino-bf16 minilm-docstrings AMD EPYC + NVIDIA H100" in text
    assert "It depends on the shape and the host" in text
    assert f"onnxruntime batch 1 {DOT} 64 tokens Intel(R) Xeon(R) Platinum 8488C quantize" in text
    assert "NVIDIA H100, driver 580.65.06, GPU-aaaa-1111" in text
    for figure in sections(summary_of(summary))["models"][0]["trade_offs"]:
        assert len({point["result"].host for point in figure["points"]}) == 1
    # hosts that look alike are told apart by their fingerprints
    summary["hosts"][OTHER_HOST] = dict(summary["hosts"]["5c1f0a77d2e9"])
    names = host_names(summary_of(summary).hosts)
    assert names[OTHER_HOST] == f"Intel(R) Xeon(R) Platinum 8488C ({OTHER_HOST})"
    assert len(set(names.values())) == 2


def test_a_point_has_the_time_per_call_and_what_is_recommended_is_in_front(summary):
    for figure in judged(summary)["trade_offs"]:
        points = figure["points"]
        assert all(one["latency_ms"] == 1e3 * one["row"].paired_s for one in points)
        (chosen,) = [one for one in points if one["deploy"]]
        assert chosen["front"]
    # an interval that ends at zero keeps its end
    results = summary_of(summary).results
    result = next(one for one in results if one.variant == "cpu-openvino-bf16")
    result.accuracy = replace(result.accuracy, delta=0.004, delta_low=0.0, delta_high=0.008)
    point = trade_offs([result], {}, [], 1.0)[0]["points"][0]
    assert (point["delta_low"], point["delta_high"]) == (0.0, 0.8)


@pytest.mark.parametrize(
    ("second", "verdicts", "equal", "fronts"),
    [
        (1.01, ("kept", "kept"), (), {"a": 1, "b": None}),
        (1.01, ("kept", "kept"), ("a", "b"), {"a": 1, "b": 2}),
        (1.01, ("kept", "kept"), ("a", "c"), {"a": 1, "b": None}),
        (2.0, ("undecided", "kept"), (), {"a": 1, "b": 2}),
        (2.0, ("kept", "undecided"), (), {"a": 1, "b": None}),
    ],
)
def test_neither_equals_nor_what_may_lose_accuracy_beat_another(second, verdicts, equal, fronts):
    placed = [
        {"variant": "a", "latency_ms": 1.0, "delta": 0.5},
        {"variant": "b", "latency_ms": second, "delta": 0.4},
    ]
    for one, verdict in zip(placed, verdicts, strict=True):
        one["accuracy"] = Accuracy(0.9, 0.88, 0.92, 1500, verdict=verdict)
    number_front(placed, set(equal))
    assert {one["variant"]: one["front"] for one in placed} == fronts
