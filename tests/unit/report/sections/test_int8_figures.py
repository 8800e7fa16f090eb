"""Charts of INT8: where marks stand, what is hollow, and how long bars are."""

import json
import re

import numpy as np
import pytest
from drawn_charts import drawn
from tightrope.report.sections.int8_figures import (
    accuracy_over_samples,
    agreement_over_samples,
    sensitivity_chart,
    spread,
)
from tightrope.report.style.palette import METHOD_COLOURS, chart_config
from tightrope.variants import METHODS


def point(method, samples, delta=-1.0, agreement=95.0, precision="int8"):
    return {
        **{"variant": f"cpu-onnxruntime-{precision}-{method}-{samples}", "method": method},
        **{"precision": precision, "mixed": "-" in precision, "samples": samples},
        **{"delta": delta, "delta_low": delta - 0.5, "delta_high": delta + 0.5},
        **{"agreement": agreement, "change": f"{delta} points", "agreed": f"{agreement} %"},
    }


def bar(operator, millinats, in_float=False):
    text = {"name": operator, "label": f"{millinats}", "agreement": "99 %"}
    return {"operator": operator, "millinats": millinats, "in_float": in_float, **text}


def accuracy(points, budget=None):
    return accuracy_over_samples(points, extent=points, budget_points=budget, description="words")


def agreement(points):
    return agreement_over_samples(points, extent=points, description="words")


def sensitivity(*rows):
    return sensitivity_chart(rows, description="words")


def lengths(svg, scheme, style):
    """The widths of the bars of that style."""
    colour = chart_config(scheme)["style"][style]["color"]
    return [
        float(width)
        for width in re.findall(rf'd="M[-\d.]+,[-\d.]+h([\d.]+)v5h[^"]*" fill="{colour}"', svg)
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("panel", "precision", "budget"),
    [(accuracy, "int8", 1.0), (agreement, "int8", None), (accuracy, "int8-auto", None)],
)
def test_each_method_has_its_colour_and_shape_and_a_mixed_precision_is_hollow(
    panel, precision, budget, scheme
):
    points = [point(method, 64, precision=precision) for method in METHODS]
    svg = drawn(panel(points, budget) if budget else panel(points), scheme)
    shapes = set()
    for method in METHODS:
        colour = METHOD_COLOURS[method][scheme == "dark"]
        filled = re.findall(rf'd="([^"]+)" fill="{colour}"', svg)
        stroke = f'stroke="{colour}" stroke-width="2"'
        outlined = re.findall(rf'<path[^>]* d="([^"]+)"[^>]* {stroke}', svg)
        (shape,) = outlined if "-" in precision else filled
        assert len(filled) + len(outlined) == 1
        shapes.add(shape)
    assert len(shapes) == len(METHODS)
    assert svg.count('stroke-dasharray="5,4"') == (budget is not None)


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
    charts = [accuracy(points), agreement(points), sensitivity(bar("a", 1.0, True))]
    assert not re.search(r"#[0-9a-f]{6}", json.dumps(charts))


@pytest.mark.parametrize("agreed", [100.0, 97.0, 20.0])
def test_no_label_says_more_than_all_answers(agreed):
    svg = drawn(agreement([point("minmax", 64, agreement=agreed)]))
    labels = [float(text) for text in re.findall(r">([\d.]+)</text>", svg) if text != "64"]
    assert max(labels) == 100 and min(labels) <= 99 and len(labels) >= 3


def test_ten_times_the_divergence_adds_the_same_length_to_each_bar_and_next_to_none_has_none():
    rows = map(bar, "abcde", (10.0, 1.0, 0.1, 0.0, 1e-9))
    rows = sensitivity(*rows, bar("f", 1.0, in_float=True))
    svg = drawn(rows)
    found = sorted(lengths(svg, "light", "bars"))
    assert len(found) == 5 and found[:2] == [0, 0]
    assert 0 < np.diff(found)[2] == pytest.approx(np.diff(found)[3], rel=0.01)
    # what is left in float has another colour
    assert len(lengths(drawn(rows, "dark"), "dark", "marked")) == 1
