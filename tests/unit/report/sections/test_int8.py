"""What the report says of INT8, computed by hand."""

import pytest
from tightrope.report.sections.int8 import has_vnni, int8_section, search_summary
from tightrope.report.sections.int8_figures import sensitivity_figure

AUTO = "cpu-onnxruntime-int8-auto-minmax-64"
MINUS = "\N{MINUS SIGN}"


def result(calibration, delta=-0.012, **changes):
    ends = {"delta": delta, "delta_low": delta - 0.01, "delta_high": delta + 0.01}
    accuracy = {"samples": 1500, **ends, "agreement": 0.95, "verdict": "undecided"}
    facts = {"engine": "onnxruntime", "precision": "int8", "device": "cpu", "host": "h"}
    name = f"cpu-onnxruntime-int8-{calibration}"
    own = {"variant": name, "calibration": calibration, "accuracy": accuracy}
    return {**facts, **own, "search": None, **changes}


def search(in_float=("b",), trials=2, smoothquant=None, operators=38, seconds=31.36):
    trial = {"smoothquant": None, "in_float": 1, "flips": 3, "verdict": "kept"}
    trial |= {"delta": 0.0, "delta_low": -0.005, "delta_high": 0.005}
    known = {"in_float": list(in_float), "smoothquant": smoothquant, "trials": [trial] * trials}
    return {**known, "samples": 1024, "seconds": seconds, "operators": operators}


def sensitivity(**kls):
    fields = {"agreement": 0.992, "logit_error": 0.01, "sqnr_db": 40.0}
    return {
        "samples": 128,
        "operators": [{"operator": n, "kl": k, **fields} for n, k in kls.items()],
    }


def section(*results, facts=None, hosts=None):
    return int8_section(results, facts or {}, hosts or {}, 1.0)


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
    facts = {"sensitivity": {"u8s8-minmax-64": record, "u8s8-minmax-8": record}}
    many = result("minmax-64", search=search(operators=1200, seconds=308))
    assert search_summary(many)["sentence"] == (
        "plain INT8; 1 of 1,200 operators stays in float; 2 trials on 1,024 calibration examples "
        "in 310 s."
    )
    other, own = section(auto, facts=facts)["sensitivities"]
    assert (other["title"], own["title"]) == ("u8s8-minmax-8", "u8s8-minmax-64")
    assert [row["in_float"] for row in own["rows"]] == [False, True]
    assert (own["left"], own["searched"], other["left"], other["searched"]) == (1, True, 0, False)
    (drawn,) = (own["chart"]["data"]["values"],)
    assert [one["name"] for one in drawn] == ["a", "\N{BLACK DIAMOND} b"]
    assert [one["label"] for one in drawn] == ["20", "<\xa00.001"]
    assert "the most sensitive is a with 20 millinats. Left in float: b." in own["description"]
    # at most forty are drawn
    record = sensitivity(**{f"layer{index}": 1 / (index + 1) for index in range(60)})
    figure = sensitivity_figure("u8s8-minmax-64", record, [])
    assert (len(figure["rows"]), figure["drawn"]) == (60, 40)
    drawn = [one["operator"] for one in figure["chart"]["data"]["values"]]
    assert drawn == [f"layer{index}" for index in range(40)]


VNNI = ["avx2", "avx512f", "avx512_vnni"]


@pytest.mark.parametrize(
    ("isa", "changes", "told"),
    [
        (VNNI, {}, True),
        (["avx2", "avx_vnni"], {}, True),
        (["avx2", "amx_int8"], {}, True),
        (["avx2", "avx512f"], {}, False),
        (["asimd", "asimddp", "i8mm"], {}, False),
        (None, {}, False),
        (VNNI, {"device": "cuda"}, False),
        (VNNI, {"precision": "fp32"}, False),
        (VNNI, {"accuracy": None}, False),
        (VNNI, {"host": "elsewhere"}, False),
    ],
)
def test_portability_is_told_of_x86_hosts_with_vnni_alone(isa, changes, told):
    assert has_vnni([result("minmax-64", **changes)], {"h": {"isa": isa}}) == told
