"""The parts from which the report is rendered, as its rule names them."""

from pathlib import Path

TEMPLATE = Path(__file__).parents[2] / "scripts/tightrope/report/template"
PARTS = {
    "template": sorted(TEMPLATE.glob("*.html")),
    "style": TEMPLATE / "page.css",
    "script": TEMPLATE / "page.js",
}
