"""What the report says of quantizing at all, from entries of the summary written by hand."""

import pytest
import results
from msgspec.structs import asdict
from report_pages import example, page_of
from tightrope.decide.quantize import Quantization, QuantizedAccuracy, QuantizedVariant
from tightrope.decide.result import Ratio, Reason, Shape
from tightrope.report.sections.int8 import quantization_section
from tightrope.report.tables import alike
from tightrope.statistics import Interval
from tightrope.summary.runs import Host

FASTER = Ratio.of(Interval(1.5, 1.4, 1.6))
SLOWER = Ratio.of(Interval(0.8, 0.7, 0.9))
EQUAL = Ratio.of(Interval(1.0, 1.0, 1.0))
MINUS, TIMES = "\N{MINUS SIGN}", "\N{MULTIPLICATION SIGN}"


def accuracy(verdict, delta=-0.05):
    return QuantizedAccuracy(delta, delta - 0.01, delta + 0.01, 90, 1500, verdict)


def variant(name, verdict="do not quantize", why=("a", "b"), **more):
    known = {"failed": None, "speedup": None, "accuracy": None}
    return QuantizedVariant(name, verdict, list(why), **{**known, **more})


def entry(
    speedup=SLOWER, judged="kept", batch=1, engine="onnxruntime", precision="int8-minmax-64", **more
):
    """An entry of `quantization`, by default of what is not worth it for its speed alone."""
    device = more.get("device", "cpu")
    names = [f"{device}-{engine}-{one}" for one in (precision, "fp32")]
    place = {"model": "m", "host": "h", "device": device, "engine": engine}
    place |= {"shape": Shape(batch=batch, sequence=64), "unquantized": names[1], "others": []}
    found = variant(names[0], speedup=speedup, accuracy=judged and accuracy(judged))
    return Quantization(**{**asdict(found), **place, **more})


def sentence(*entries, deployed=(), hosts=None):
    return quantization_section(entries, deployed, hosts or {}, machines={})["sentence"]


@pytest.mark.parametrize("verdict", ["quantize", "undecided"])
def test_an_engine_that_may_gain_or_a_quantized_choice_leaves_the_sentence_out(verdict):
    assert sentence(entry(), entry(engine="openvino", verdict=verdict)) is None
    # the quantized variant of an engine without a float one has no entry
    assert sentence(entry(), deployed=[results.result("cpu-openvino-int8-nncf-64")]) is None
    assert sentence(entry(), deployed=[results.result("cpu-openvino-bf16")])
    assert quantization_section([], [], {}, machines={}) is None


SLOW = f"onnxruntime is slower with int8-minmax-64 than with fp32 (0.80{TIMES}"
LOSSY = f"loses too much accuracy with int8-minmax-64 ({MINUS}5.0 points)"
WORSE = Ratio.of(Interval(0.5, 0.4, 0.6))
OTHER = variant(
    "v", why=[Reason.of("verdict", verdict="dropped")], speedup=FASTER, accuracy=accuracy("dropped")
)
NNCF = {"engine": "openvino", "precision": "int8-nncf-64"}


def lost(reason):
    return entry(speedup=None, judged=None, failed=reason)


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        ([entry()], f"{SLOW})"),
        # the best that it came to
        (
            [entry(), entry(speedup=WORSE, batch=8, precision="int8-dynamic")],
            "onnxruntime is slower with int8-minmax-64 or int8-dynamic than with fp32 "
            f"(0.80{TIMES} at best)",
        ),
        (
            [entry(speedup=EQUAL)],
            f"onnxruntime is no faster with int8-minmax-64 than with fp32 (1.00{TIMES})",
        ),
        ([entry(speedup=FASTER, judged="dropped")], f"onnxruntime {LOSSY}"),
        # the beginning of a reason
        (
            [lost("collapsed: one answer to 98 % of 128; at fault: operator a\nand more")],
            "onnxruntime failed with int8-minmax-64 (collapsed: one answer to 98 % of 128)",
        ),
        (
            [lost("x" * 200)],
            f"onnxruntime failed with int8-minmax-64 ({'x' * 90}\N{HORIZONTAL ELLIPSIS})",
        ),
        (
            [
                *(entry(judged="dropped"), entry(speedup=FASTER, judged="dropped", batch=8)),
                *(entry(**NNCF), entry(**NNCF, batch=8)),
            ],
            f"{SLOW}) at 1 of 2 shapes and {LOSSY}; "
            f"openvino is slower with int8-nncf-64 than with fp32 (0.80{TIMES} at best)",
        ),
        # a faster one that was left for its accuracy
        ([entry(others=[OTHER])], f"{SLOW}), and what is faster loses too much accuracy"),
    ],
)
def test_a_sentence_tells_all_that_speaks_against_quantizing(entries, told):
    assert sentence(*entries) == told


def test_devices_and_hosts_are_named_where_there_are_several():
    hosts = {"h": "Some CPU", "k": "Some GPU"}
    told = sentence(entry(), entry(engine="tensorrt", device="cuda", host="k"), hosts=hosts)
    assert told.startswith("onnxruntime on cpu, Some CPU is slower")
    assert "; tensorrt on cuda, Some GPU is slower with int8-minmax-64 than with fp32" in told
    assert sentence(entry(), hosts=hosts).startswith("onnxruntime is slower")


def test_rows_are_those_of_an_engine_after_another_by_shape():
    verdicts = {"a": "undecided", "b": "do not quantize", "c": "undecided"}
    others = [
        variant(name, one, [Reason.of("faster_than", other="x")]) for name, one in verdicts.items()
    ]
    entries = [entry(batch=16), entry(engine="openvino"), entry(batch=2, others=others)]
    found = quantization_section(entries, [], {"h": "Some CPU"}, machines={})
    rows = [(row.engine, row.shape.batch) for row in found["rows"]]
    assert rows == [("onnxruntime", 2), ("onnxruntime", 16), ("openvino", 1)]
    # other variants with the same reasons are one group
    why = ("faster than x",)
    groups = [(("undecided", why), ["a", "c"]), (("do not quantize", why), ["b"])]
    assert alike(found["rows"][0].others) == groups


def text_of(document):
    return page_of(document).text.replace("\xa0", " ")


def machine(*isa):
    return Host("a CPU", list(isa), 2, "3.11.7", {})


AVX2, VNNI = machine("avx2", "avx512f"), machine("avx2", "avx512_vnni")


def cause(*entries, machines, hosts=None):
    return quantization_section(entries, (), hosts or {}, machines=machines)["cause"]


NO_VNNI = "This CPU has no VNNI, the instruction that does the work of three in INT8 products"


@pytest.mark.parametrize(
    ("changes", "host", "told"),
    [
        ({}, AVX2, NO_VNNI),
        ({"speedup": EQUAL}, AVX2, NO_VNNI),
        ({}, VNNI, None),
        ({}, machine("asimd"), None),
        ({}, machine(), None),
        ({"host": "elsewhere"}, AVX2, None),
        ({"speedup": FASTER}, AVX2, None),
        ({"speedup": None}, AVX2, None),
        ({"device": "cuda"}, AVX2, None),
    ],
)
def test_a_cpu_without_vnni_is_why_int8_is_slow(changes, host, told):
    assert cause(entry(**changes), machines={"h": host}) == told


def test_the_cause_names_its_hosts_and_stands_with_the_sentence_and_above_the_table():
    hosts = {"h": "EPYC 7763", "g": "Xeon E5", "f": "Xeon 8488C"}
    entries = [entry(host=host) for host in hosts]
    machines = {"h": AVX2, "g": AVX2, "f": VNNI}
    found = cause(*entries, machines=machines, hosts=hosts)
    assert found.startswith("EPYC 7763 and Xeon E5 have no VNNI, the")
    summary = example()
    assert NO_VNNI not in text_of(summary)
    (host,) = summary["hosts"].values()
    host["isa"] = ["avx2"]
    found = text_of(summary)
    assert found.count(f"{NO_VNNI}.") >= 2 and f"at best). {NO_VNNI}" in found
    assert f"To quantize or not {NO_VNNI}" in found


def test_the_section_is_there_for_an_entry_alone_and_what_is_not_known_is_a_dash():
    summary = example()
    for result in summary["results"]:
        if "int8" in result["precision"]:
            result.update(accuracy=None, search=None)
    for one in summary["quantization"]:
        one.update(speedup=None, verdict="undecided")
        if one["accuracy"]:
            unknown = ("delta", "delta_low", "delta_high", "flips")
            one["accuracy"] |= {**dict.fromkeys(unknown), "verdict": "undecided"}
    found = page_of(summary)
    assert found.section("int8") and '<a href="#int8">' in found.html
    assert "To quantize or not" in found.text and "All quantized variants" not in found.text
    assert " ".join(["\N{EN DASH} not compared"] * 3) in found.text and "None" not in found.text
