"""Charts as the page draws them."""

import json
from typing import Any

import vl_convert
from tightrope.report.style.palette import chart_config


def drawn(specification: Any, scheme: str = "light") -> str:
    """The SVG of a chart, 400 pixels wide."""
    fixed = json.dumps({**specification, "width": 400})
    return vl_convert.vegalite_to_svg(fixed, config=chart_config(scheme))
