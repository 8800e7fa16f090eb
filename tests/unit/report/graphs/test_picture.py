"""The picture of a graph: well-formed, legible, and nothing outside its edges."""

import itertools
import xml.etree.ElementTree as ElementTree

import pytest
from colour_vision import SIGHT, contrast, lab, linear
from tightrope.onnx.file import load_onnx
from tightrope.report.graphs.chips import chips
from tightrope.report.graphs.describe import describe
from tightrope.report.graphs.picture import NARROW, WIDE, failure_picture, picture
from tightrope.report.graphs.style import (
    CHIP_SIZE,
    FACT_SIZE,
    FORMAT_COLOURS,
    MONO_WIDTH,
    NAME_SIZE,
    RARE,
    SANS_WIDTH,
)
from tightrope.report.graphs.without_weights import without_weights
from tightrope.report.graphs.words import count, name_lines, size, span
from tightrope.report.style.palette import INKS
from tiny_model import TinyModel

SVG = "{http://www.w3.org/2000/svg}"
LETTERS = {"name": NAME_SIZE * MONO_WIDTH, "chip": CHIP_SIZE * MONO_WIDTH}
WIDTHS = pytest.mark.parametrize("width", [WIDE, NARROW])


def run(kind: str, number: int = 1, **more) -> dict:
    plain = {"precision": "fp32", "weighted": False, "modules": [], "inside": 0}
    return {"type": kind, "count": number, **plain, **more}


def layer(*names: str, **more) -> dict:
    facts = {"parameters": 1_774_464, "weight_bytes": 7_097_856, "seconds": None}
    return {"names": list(names), "operators": [run("MatMul", 3)], **facts, **more}


def document(*blocks: dict, **more) -> dict:
    ends = [{"name": "x", "type": "float32", "shape": ["batch", None]}]
    facts = {"by_precision": {"fp32": 3, "other": 1}, "time": None}
    return {"inputs": ends, "outputs": ends, "blocks": list(blocks), **facts, **more}


def reaches(svg: ElementTree.Element) -> list[tuple[float, float]]:
    """How far to the right and down each rectangle and each text reaches."""
    found = []
    for one in svg.iter():
        if one.tag == f"{SVG}rect":
            sizes = {name: float(one.get(name)) for name in ("x", "y", "width", "height")}
            found.append((sizes["x"] + sizes["width"], sizes["y"] + sizes["height"]))
        if one.tag == f"{SVG}text":
            kind = one.get("class").split()[0]
            letter = LETTERS.get("chip" if kind == "end" else kind, FACT_SIZE * SANS_WIDTH)
            own = 0 if one.get("text-anchor") == "end" else len(one.text or "") * letter
            found.append((float(one.get("x")) + own, float(one.get("y"))))
    return found


def require_inside(text: str, width: float) -> ElementTree.Element:
    svg = ElementTree.fromstring(text)
    _, _, wide, high = map(float, svg.get("viewBox").split())
    assert wide == width
    assert all(right <= wide and down <= high for right, down in reaches(svg))
    return svg


@WIDTHS
@pytest.mark.parametrize("file", ["onnx", "simplified", "u8s8", "e4m3"])
def test_a_real_graph_keeps_within_its_edges(tiny: TinyModel, file: str, width: int) -> None:
    facts = describe(without_weights(load_onnx(getattr(tiny, file)), "").graph)
    text = picture(facts, width=width, label="tiny")
    svg = require_inside(text, width)
    words = " ".join(one.text or "" for one in svg.iter(f"{SVG}text"))
    assert "bert.encoder.layer" in words.replace(" .", ".") and "MatMul" in words
    assert text == picture(facts, width=width, label="tiny")


@WIDTHS
def test_names_that_are_too_long_break_or_are_cut(width: int) -> None:
    long = ".".join(["a_module_with_a_rather_long_name"] * 9) + "." + "x" * 300
    wide = run("AnOperatorOfSomebodysOwn" * 20, 12_000, weighted=True, inside=3)
    block = {"times": 12, "layers": [layer(long, operators=[wide] * 3, seconds=1.0)]}
    ends = [{"name": "input" * 60, "type": "float32", "shape": ["batch"] * 30}] * 3
    time = {"shape": {"batch": 16, "height": 224, "width": 224}, "host": "h"}
    text = picture(document(block, inputs=ends, time=time), width=width, label="long")
    require_inside(text, width)


@WIDTHS
def test_layers_that_repeat_together_have_one_frame(width: int) -> None:
    block = {"times": 4, "layers": [layer("a.0", "a.3"), layer("b.0", "b.3")]}
    svg = require_inside(picture(document(block), width=width, label="pairs"), width)
    names = [one.text for one in svg.iter(f"{SVG}text") if one.get("class") == "name"]
    assert names[0] == "4 \N{MULTIPLICATION SIGN}" and len(names) == 3


def test_letters_that_xml_forbids_and_markup_in_names_do_no_harm() -> None:
    name = 'a\x00b\ud800<script>&"'
    svg = ElementTree.fromstring(
        picture(document({"times": 1, "layers": [layer(name)]}), label=name)
    )
    assert not list(svg.iter(f"{SVG}script")) and not list(svg.iter("script"))
    assert "<script>" in " ".join(one.text or "" for one in svg.iter(f"{SVG}text"))


def test_bars_are_as_long_as_the_shares_of_the_time() -> None:
    blocks = [
        {"times": 1, "layers": [layer(name, seconds=own)]} for name, own in (("a", 3), ("b", 1))
    ]
    time = {"shape": {"batch": 1}, "host": "h"}
    text = picture(document(*blocks, time=time), label="shares")
    svg = ElementTree.fromstring(text)
    tracks, shares = (
        [float(one.get("width")) for one in svg.iter(f"{SVG}rect") if one.get("class") == kind][1:]
        for kind in ("track", "share")
    )
    assert [own / all_ for own, all_ in zip(shares, tracks, strict=True)] == pytest.approx(
        [0.75, 0.25], abs=1e-3
    )
    assert "75 % of the time" in text and "25 % of the time" in text


def test_why_there_is_no_picture_is_a_sentence_in_its_place() -> None:
    svg = require_inside(failure_picture("tiny u8s8: not quantized: " + "because " * 40), WIDE)
    assert len(list(svg.iter(f"{SVG}text"))) > 2


def test_chips_break_into_lines_and_none_lies_on_another() -> None:
    placed = chips([run("MatMul", n) for n in range(1, 40)], left=10, top=0, width=200)
    assert len({chip.y for chip in placed}) > 5
    for one, other in itertools.pairwise(placed):
        assert other.y > one.y or other.x > one.x + one.width


def test_equal_layers_have_one_name() -> None:
    assert span(["net.layer.0", "net.layer.1", "net.layer.4"]) == "net.layer.0\N{EN DASH}4"
    assert span(["a", "b.c"]) == "a \N{HORIZONTAL ELLIPSIS} b.c"
    assert name_lines(["encoder.layer.0"], "", 10) == ["encoder", ".layer.0"]


def test_sizes_have_three_digits_and_a_unit() -> None:
    assert [count(own) for own in (770, 24_600, 1_774_464)] == ["770", "24.6 k", "1.77 M"]
    assert [size(own) for own in (3_080, 7_097_856)] == ["3.08 kB", "7.10 MB"]


@pytest.mark.parametrize("dark", [False, True])
def test_formats_are_told_apart_by_everybody_and_stand_out_from_the_page(dark: bool) -> None:
    colours = [pair[dark] for pair in (*FORMAT_COLOURS.values(), RARE)]
    page = INKS["dark" if dark else "light"]["page"]
    assert all(contrast(one, page) >= 3 for one in colours)
    for sight in SIGHT.values():
        seen = [lab(sight @ linear(one)) for one in colours]
        apart = [
            ((one - other) ** 2).sum() ** 0.5 for one, other in itertools.combinations(seen, 2)
        ]
        assert min(apart) >= 20
