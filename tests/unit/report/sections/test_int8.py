"""What the report says and draws of INT8, computed by hand."""

import json
import re

import pytest
from drawn_charts import drawn
from msgspec.structs import replace
from report_pages import MODEL, example, page_of, summary_of
from tightrope.decide.result import Accuracy, Result, Search, Trial
from tightrope.report.charts import accuracy_over_samples, agreement_over_samples, spread
from tightrope.report.sections.int8 import has_vnni, int8_section
from tightrope.report.style.palette import METHOD_COLOURS
from tightrope.summary.accuracy import OperatorSensitivity, Sensitivity
from tightrope.summary.runs import Host
from tightrope.variants import METHODS

AUTO = "cpu-onnxruntime-int8-auto-minmax-64"
MINUS = "\N{MINUS SIGN}"


def result(calibration, delta=-0.012, **changes):
    ends = {"delta": delta, "delta_low": delta - 0.01, "delta_high": delta + 0.01}
    judged = Accuracy(0.9, 0.88, 0.92, 1500, **ends, agreement=0.95, verdict="undecided")
    parts = f"cpu-onnxruntime-int8-{calibration}", "cpu", "onnxruntime", "int8", calibration
    known = Result("m", *parts, baseline=None, host="h", status="ok", accuracy=judged)
    return replace(known, **changes)


def search(in_float):
    trial = Trial(None, 1, 0.0, -0.005, 0.005, flips=3, verdict="kept", seconds=1.0)
    facts = {"samples": 1024, "budget_points": 1.0, "seconds": 31.36, "operators": 38}
    return Search(in_float, None, **facts, trials=[trial] * 2)


def sensitivity(**kls):
    operators = [OperatorSensitivity(n, 0.992, 0.01, k, sqnr_db=40.0) for n, k in kls.items()]
    return Sensitivity(128, operators)


def section(*results, model=None, hosts=None):
    return int8_section(results, model, hosts or {}, 1.0)


def test_each_engine_has_a_figure_in_which_mixed_precisions_are_apart():
    auto = result("minmax-512", precision="int8-auto", variant=AUTO)
    mixed = {"engine": "openvino", "precision": "int8-bf16"}
    others = result("nncf-32", **mixed), result("nncf-512", **mixed)
    found = section(result("minmax-32"), result("minmax-512"), auto, *others)
    assert [figure["title"] for figure in found["figures"]] == ["onnxruntime", "openvino"]
    mixed = [[one["mixed"] for one in figure["points"]] for figure in found["figures"]]
    assert mixed == [[False, False, True], [True, True]]
    cuda = result("minmax-512", device="cuda", host="k")
    both = section(result("minmax-512"), cuda, hosts={"h": "Some CPU", "k": "Some GPU"})
    titles = [figure["title"].split(" \N{MIDDLE DOT} ") for figure in both["figures"]]
    assert titles == [["onnxruntime", "cpu", "Some CPU"], ["onnxruntime", "cuda", "Some GPU"]]
    assert (found["methods"], found["mixed"]) == ({"minmax", "nncf"}, {"int8-auto", "int8-bf16"})
    # one calibration is told in a sentence
    for other, panels in (("minmax-32", 2), ("entropy-512", 2), ("minmax-512", 0)):
        one = section(result("minmax-512"), result(other, precision="int8-auto"))
        (figure,) = one["figures"]
        assert (len(figure["panels"]), bool(figure["sentence"])) == (panels, not panels)
        assert bool(one["methods"]) == bool(one["mixed"]) == bool(panels)


def test_a_model_without_anything_judged_in_int8_has_no_section():
    unjudged = result("minmax-512", accuracy=None)
    assert section() is None
    assert section(result(None, precision="bf16"), unjudged) is None


def test_what_int8_auto_left_in_float_is_marked_in_the_sensitivity_of_its_own_calibration():
    auto = result("minmax-64", precision="int8-auto", variant=AUTO, search=search(in_float=["b"]))
    record = sensitivity(a=0.02, b=0.0000004)
    known = {"u8s8-minmax-64": record, "u8s8-minmax-8": record}
    model = replace(summary_of(example()).models[MODEL], sensitivity=known)
    other, own = section(auto, model=model)["sensitivities"]
    assert (other["title"], own["title"]) == ("u8s8-minmax-8", "u8s8-minmax-64")
    assert [row["in_float"] for row in own["rows"]] == [False, True]
    assert (own["searched"], other["searched"]) == (True, False)
    assert not any(row["in_float"] for row in other["rows"])


def test_the_page_says_what_a_search_left_in_float_and_what_it_took():
    document = example()
    told = next(one["search"] for one in document["results"] if one["search"])
    told.update(smoothquant=None, in_float=["b"], operators=1200, seconds=308)
    told["trials"] = told["trials"][:2]
    words = "plain INT8; 1 of 1,200 operators stays in float; 2 trials on 1,024 calibration "
    assert f"{words}examples in 310 s." in page_of(document).text


VNNI = ["avx2", "avx512f", "avx512_vnni"]


@pytest.mark.parametrize(
    ("isa", "changes", "told"),
    [
        (VNNI, {}, True),
        (["avx2", "avx_vnni"], {}, True),
        (["avx2", "amx_int8"], {}, True),
        (["avx2", "avx512f"], {}, False),
        (["asimd", "asimddp", "i8mm"], {}, False),
        ([], {}, False),
        (VNNI, {"device": "cuda"}, False),
        (VNNI, {"precision": "fp32"}, False),
        (VNNI, {"accuracy": None}, False),
        (VNNI, {"host": "elsewhere"}, False),
    ],
)
def test_portability_is_told_of_x86_hosts_with_vnni_alone(isa, changes, told):
    assert has_vnni([result("minmax-64", **changes)], {"h": Host("a", isa, 2, "3", {})}) == told


def point(method, samples, delta=-1.0, agreement=95.0, precision="int8"):
    return {
        **{"variant": f"cpu-onnxruntime-{precision}-{method}-{samples}", "method": method},
        **{"precision": precision, "mixed": "-" in precision, "samples": samples},
        **{"delta": delta, "delta_low": delta - 0.5, "delta_high": delta + 0.5},
        **{"agreement": agreement, "change": f"{delta} points", "agreed": f"{agreement} %"},
    }


def accuracy(points, budget=1.0):
    return accuracy_over_samples(points, extent=points, budget_points=budget, description="words")


def agreement(points):
    return agreement_over_samples(points, extent=points, description="words")


def test_a_mixed_precision_is_hollow_and_the_budget_is_a_dashed_line_where_there_is_one():
    colour = METHOD_COLOURS["minmax"][0]
    for precision, hollow, budget in (("int8", 0, 1.0), ("int8-auto", 1, None)):
        svg = drawn(accuracy([point("minmax", 64, precision=precision)], budget))
        found = len(re.findall(rf'<path[^>]* stroke="{colour}" stroke-width="2"', svg))
        filled = len(re.findall(rf'<path[^>]* fill="{colour}"', svg))
        assert (found, filled) == (hollow, 1 - hollow)
        assert svg.count('stroke-dasharray="5,4"') == (budget is not None)
    # each method has its colour and its shape
    svg = drawn(agreement([point(method, 64) for method in METHODS]), "dark")
    colours = [METHOD_COLOURS[method][1] for method in METHODS]
    shapes = [re.findall(rf'd="([^"]+)" fill="{colour}"', svg) for colour in colours]
    assert len({found for (found,) in shapes}) == len(METHODS)


def test_both_panels_place_a_point_alike_also_where_only_one_knows_all_points():
    # series at one count stand beside each other around it
    points = [point("minmax", 64), point("entropy", 64), point("minmax", 64, precision="int8-auto")]
    low, middle, high = (one["place"] for one in spread(points, points))
    assert low < middle == 64 < high
    assert middle / low == pytest.approx(high / middle)
    points = [point("minmax", 32), point("entropy", 32, agreement=None), point("minmax", 128)]
    above = {one["variant"]: one["place"] for one in accuracy(points)["data"]["values"]}
    below = {one["variant"]: one["place"] for one in agreement(points)["data"]["values"]}
    assert len(above) == 3 and len(below) == 2
    assert all(above[name] == place for name, place in below.items())
    # the axis is named at the counts, and only below
    points = [point("minmax", 32), point("minmax", 2048, precision="int8-auto")]
    assert ">2,048</text>" not in drawn(accuracy(points))
    assert ">2,048</text>" in drawn(agreement(points))
    charts = [accuracy(points), agreement(points)]
    assert not re.search(r"#[0-9a-f]{6}", json.dumps(charts))


@pytest.mark.parametrize("agreed", [100.0, 97.0, 20.0])
def test_no_label_says_more_than_all_answers(agreed):
    svg = drawn(agreement([point("minmax", 64, agreement=agreed)]))
    labels = [float(text) for text in re.findall(r">([\d.]+)</text>", svg) if text != "64"]
    assert max(labels) == 100 and min(labels) <= 99 and len(labels) >= 3
