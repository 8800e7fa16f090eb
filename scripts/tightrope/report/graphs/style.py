"""Colours, marks and fonts of graph diagrams, light and dark."""

from tightrope.report.style.palette import FONT, INKS, SHAPES

MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace"
# Format to (light, dark), with the contrast limits of the charts' engines; marks differ too.
FORMAT_COLOURS = {
    "fp32": ("#6b7590", "#b9c3d6"),
    "fp16": ("#b53bf0", "#a347ff"),
    "bf16": ("#0b2c99", "#3f8fd9"),
    "int8": ("#009e6a", "#5cf598"),
    "fp8": ("#9a4206", "#bd7f0c"),
}
FORMAT_SHAPES = {name: SHAPES[name] for name in FORMAT_COLOURS}
# (light, dark) of formats that no engine has
RARE = ("#5c0f2c", "#d32a66")
RARE_SHAPE = SHAPES["tf32"]
# letter width over font size: an upper bound for MONO, rarely exceeded for FONT
MONO_WIDTH, SANS_WIDTH = 0.62, 0.56
NAME_SIZE, CHIP_SIZE, FACT_SIZE = 12.5, 11, 11.5


def css() -> str:
    """Return the style sheet of diagrams, each of class `graph`."""
    return "".join(
        [
            scheme("light"),
            f"@media (prefers-color-scheme:dark){{{scheme('dark')}}}",
            f".graph text{{font-family:{FONT};font-size:{FACT_SIZE}px;fill:var(--ink)}}",
            f".graph .name{{font-family:{MONO};font-size:{NAME_SIZE}px;font-weight:600}}",
            f".graph .chip,.graph .end{{font-family:{MONO};font-size:{CHIP_SIZE}px}}",
            ".graph .heavy{font-weight:600}",
            ".graph .quiet,.graph .move{fill:var(--soft)}",
            ".graph .card{fill:var(--card);stroke:var(--rim)}",
            ".graph .plain{fill:none;stroke:var(--rim)}",
            ".graph .flow{fill:none;stroke:var(--soft);stroke-width:1.25}",
            ".graph .tint{fill:var(--own);fill-opacity:.17}",
            ".graph .mark{fill:var(--own)}",
            ".graph .track{fill:var(--rim)}",
            ".graph .share{fill:var(--bar)}",
            *(f".graph .{name}{{--own:var(--{name})}}" for name in [*FORMAT_COLOURS, "rare"]),
        ]
    )


def scheme(name: str) -> str:
    """Return the colours of the scheme "light" or "dark" as CSS."""
    ink, dark = INKS[name], name == "dark"
    colours = {
        "ink": ink["text"],
        "soft": ink["quiet"],
        "rim": "#3b4046" if dark else "#d6d6cf",
        "card": "#1e2125" if dark else "#f4f4f0",
        "bar": "#86b7f7" if dark else "#0a4fa3",
        **{precision: pair[dark] for precision, pair in FORMAT_COLOURS.items()},
        "rare": RARE[dark],
    }
    return ".graph{" + ";".join(f"--{key}:{colour}" for key, colour in colours.items()) + "}"


def class_of(precision: str) -> str:
    """Return the CSS class of a format's colour."""
    return precision if precision in FORMAT_COLOURS else "rare"


def shape_of_format(precision: str) -> str:
    """Return the SVG path of a format's mark, of radius 1 around the origin."""
    return FORMAT_SHAPES.get(precision, RARE_SHAPE)
