"""Colours and shapes of the charts, light and dark.

Colour encodes the engine, shape the precision; both encode the calibration method.
"""

from typing import Any

from tightrope.engine_table import ENGINES

# A circle of radius 1 and ten shapes inside it, as SVG paths around the origin.
SHAPES = {
    "fp32": "M-0.9,0A0.9,0.9,0,1,1,0.9,0A0.9,0.9,0,1,1,-0.9,0Z",
    "tf32": "M0,-1L0.95,-0.31L0.59,0.81L-0.59,0.81L-0.95,-0.31Z",
    "bf16": "M-0.8,-0.8L0.8,-0.8L0.8,0.8L-0.8,0.8Z",
    "fp16": "M0,-1.15L1.15,0L0,1.15L-1.15,0Z",
    "int8": "M0,-1L1.05,0.85L-1.05,0.85Z",
    "int8-bf16": "M1,0L-0.85,1.05L-0.85,-1.05Z",
    "int8-fp16": "M-1,0L0.85,-1.05L0.85,1.05Z",
    "int8-dynamic": "M0,1L-1.05,-0.85L1.05,-0.85Z",
    "int8-auto": "M0,-1.2L0.35,-0.35L1.2,0L0.35,0.35L0,1.2L-0.35,0.35L-1.2,0L-0.35,-0.35Z",
    "fp8": "M-0.35,-1L0.35,-1L0.35,-0.35L1,-0.35L1,0.35L0.35,0.35L0.35,1L-0.35,1L-0.35,0.35"
    "L-1,0.35L-1,-0.35L-0.35,-0.35Z",
    "given": "M-0.9,-1L0.9,-1L-0.9,1L0.9,1Z",
}
# Engine to (light, dark).
COLOURS = {name: engine.colour for name, engine in ENGINES.items()}
# Calibration method to (light, dark), with the same contrast limits as engines.
METHOD_COLOURS = {
    "minmax": ("#0a3776", "#1162d4"),
    "entropy": ("#c27e0a", "#e9560c"),
    "percentile": ("#471f33", "#b24d80"),
    "random": ("#7f804d", "#b2b280"),
    "nncf": ("#188b8b", "#a8f0f0"),
    "qat": ("#9018d8", "#f090f0"),
}
METHOD_SHAPES = dict(zip(METHOD_COLOURS, SHAPES.values(), strict=False))
# (light, dark) of highlighted bars; other bars have the quiet ink
MARKED = ("#0a4fa3", "#86b7f7")
# (least, most) of a heat map, light and dark: the text on both has a contrast of at least 4.5:1
HEAT = ("#eef3fa", "#8db3e2"), ("#1d2530", "#2c5a96")
INKS = {
    "light": {"page": "#fcfcfa", "text": "#1d1f22", "quiet": "#5d6269", "line": "#e4e4df"},
    "dark": {"page": "#16181b", "text": "#eceded", "quiet": "#a3a9b1", "line": "#2e3237"},
}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def chart_config(scheme: str) -> dict[str, Any]:
    """Return the Vega-Lite config of every chart for the colour scheme "light" or "dark"."""
    ink = INKS[scheme]
    engines, methods = (
        [pair[scheme == "dark"] for pair in pairs.values()] for pairs in (COLOURS, METHOD_COLOURS)
    )
    return {
        "background": None,
        "font": FONT,
        "aria": False,
        "range": {
            "category": engines,
            "ordinal": methods,
            "symbol": list(SHAPES.values()),
            "heatmap": list(HEAT[scheme == "dark"]),
        },
        "view": {"stroke": None},
        "title": {"color": ink["quiet"], "fontSize": 12, "fontWeight": 400, "anchor": "start"},
        "axis": {
            "labelColor": ink["quiet"],
            "titleColor": ink["quiet"],
            "gridColor": ink["line"],
            "labelFontSize": 11,
            "titleFontSize": 12,
            "titleFontWeight": 400,
            "domain": False,
            "ticks": False,
            "labelPadding": 6,
            "titlePadding": 8,
        },
        "legend": {"labelColor": ink["quiet"], "labelFontSize": 11, "labelLimit": 0},
        "style": marks(scheme),
    }


def marks(scheme: str) -> dict[str, Any]:
    """Return the styles of marks, by name, for the colour scheme "light" or "dark"."""
    ink = INKS[scheme]
    return {
        "front": {"color": ink["quiet"], "strokeWidth": 1.25},
        "zero": {"color": ink["quiet"], "strokeWidth": 1},
        "budget": {"color": ink["text"], "strokeWidth": 1.25, "strokeDash": [5, 4]},
        "edge": {"color": ink["text"], "strokeWidth": 1, "strokeDash": [2, 3]},
        "marked": {"color": MARKED[scheme == "dark"]},
        "label": {"color": ink["text"], "fontSize": 12},
        "halo": {"color": ink["page"], "fontSize": 12, "stroke": ink["page"], "strokeWidth": 4},
        "ring": {"color": ink["text"], "strokeWidth": 1.5, "filled": False},
        "mask": {"color": ink["page"]},
    }
