"""Charts: what is drawn, and colours that everybody can tell apart."""

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
from colour_vision import SIGHT, contrast, lab, linear
from drawn_charts import drawn
from tightrope.report.charts import accuracy_latency_chart, log_ticks
from tightrope.report.style.palette import COLOURS, INKS, METHOD_COLOURS, SHAPES

ROOT = Path(__file__).parents[3]
STYLE = ROOT / "scripts/tightrope/report/template/page.css"


def palettes():
    """The custom properties of the style sheet: light, then dark."""
    pairs = re.findall(r"--(\w+): light-dark\((#\w{6}), (#\w{6})\)", STYLE.read_text())
    return [{name: colours[dark] for name, *colours in pairs} for dark in (False, True)]


def point(variant, latency, delta, **more):
    device, engine, precision = variant.split("-", 2)
    return {
        **{"variant": variant, "device": device, "engine": engine, "precision": precision},
        **{"latency_ms": latency, "latency_low": latency * 0.97, "latency_high": latency * 1.03},
        **{"delta": delta, "delta_low": delta - 0.5, "delta_high": delta + 0.5},
        **{"front": None, "deploy": False, "latency": f"{latency} ms", "change": f"{delta} points"},
        **more,
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_engine_and_precision_is_drawn_in_its_own_colour_and_shape(scheme):
    engines = [point(f"cpu-{engine}-fp32", 5 + i, 0) for i, engine in enumerate(COLOURS)]
    svg = drawn(accuracy_latency_chart(engines, budget_points=None, description=""), scheme)
    assert all(pair[scheme == "dark"] in svg for pair in COLOURS.values())
    shapes = [point(f"cpu-openvino-{precision}", 5, 0) for precision in SHAPES]
    svg = drawn(accuracy_latency_chart(shapes, budget_points=None, description=""), scheme)
    colour = COLOURS["openvino"][scheme == "dark"]
    marks = re.findall(rf'd="([^"]+)" fill="{colour}"', svg)
    assert len(set(marks)) == len(SHAPES)


def test_front_numbers_too_close_to_be_read_share_one_text():
    points = [
        point("cpu-openvino-int8", 2.00, 0.1, front=1),
        point("cpu-openvino-bf16", 2.02, 0.2, front=2),
        point("cpu-compile-bf16", 5.00, 0.3, front=3),
        point("cpu-newcomer-int4", 9.20, 0.0),
    ]
    chart = accuracy_latency_chart(points, budget_points=1.0, description="")
    svg = drawn(chart)
    assert ">1, 2<" in svg and ">3<" in svg and "accuracy budget" in svg
    assert not re.search(r"#[0-9a-f]{6}", json.dumps(chart))
    # one that fell far does not squeeze the others together
    points = [point("cpu-openvino-int8", 2, -58), point("cpu-openvino-bf16", 3, 0.1)]
    svg = drawn(accuracy_latency_chart(points, budget_points=None, description=""))
    assert "compressed beyond 1" in svg and "accuracy budget" not in svg


def test_axes_have_a_few_round_ticks():
    for low, high in ((0.2, 15), (21, 75), (9.1, 9.9), (0.8, 4.9), (1, 1e6)):
        ticks = log_ticks(low, high)
        assert 2 <= len(ticks) <= 10 and all(low <= tick <= high for tick in ticks)


@pytest.mark.parametrize("pairs", [COLOURS, METHOD_COLOURS])
@pytest.mark.parametrize("dark", [False, True])
def test_engines_and_methods_stand_out_from_the_page_and_from_each_other(dark, pairs):
    page = INKS["dark" if dark else "light"]["page"]
    colours = [pair[dark] for pair in pairs.values()]
    assert min(contrast(colour, page) for colour in colours) >= 3
    for matrix in SIGHT.values():
        seen = [lab(matrix @ linear(colour)) for colour in colours]
        assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 17


@pytest.mark.parametrize("dark", [False, True])
def test_text_is_readable_on_its_page(dark):
    properties, ink = palettes()[dark], INKS["dark" if dark else "light"]
    texts = ("text", "quiet", "link", "good", "bad", "unsure")
    assert min(contrast(properties[name], properties["page"]) for name in texts) >= 4.5
    assert {name: properties[name] for name in ink} == ink
