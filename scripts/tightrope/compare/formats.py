"""A comparison as text for a terminal, as Markdown and as a page; what files say controls none."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tightrope import report
from tightrope.compare.compare import Comparison
from tightrope.compare.read import Shape
from tightrope.errors import printable
from tightrope.report.html import read_template
from tightrope.report.style.marks import code_span
from tightrope.report.style.numbers import TIMES, milliseconds, points
from tightrope.statistics import Interval

# rows of a table on a terminal; the other formats have all
ROWS = 30
HERE = Path(__file__).parent / "template"
REPORT = Path(report.__path__[0]) / "template"


class Quoted(NamedTuple):
    """Text from a file: a name, a reason, an example. Each format escapes it in its own way."""

    text: str


class Words(tuple[str | Quoted, ...]):
    """A line of text of the program's own words and quotations."""

    def __new__(cls, *parts: "str | Quoted") -> "Words":
        """Return the line of these parts."""
        return super().__new__(cls, parts)


class Table(NamedTuple):
    """Rows under a header; a cell is a line."""

    header: Sequence[str]
    rows: Sequence[Sequence[Words]]


class Section(NamedTuple):
    """A part of the comparison: its title, lines of text, and a table, if any.

    `verdicts` are classes of the page's style by the first words of a cell.
    """

    title: str
    lines: Sequence[Words]
    table: Table | None = None


def change_words(time: Interval) -> str:
    """Format a time ratio: 1.05 with the times sign, and its interval."""
    return f"{time.value:.3f}{TIMES} ({time.low:.3f} to {time.high:.3f})"


def points_words(delta: Interval) -> str:
    """Format a change of accuracy in percentage points, with its interval."""
    value, low, high = (points(one) for one in delta)
    return f"{value} ({low} to {high})"


def shape_words(shape: Shape) -> str:
    """Format a shape as its sizes: 1x128, padded texts as `32x128, 64 tokens`."""
    sizes = dict(shape)
    tokens = sizes.pop("tokens", None)
    joined = "x".join(map(str, sizes.values())) or "any shape"
    return joined if tokens is None else f"{joined}, {tokens} tokens"


def time_words(seconds: float | None) -> str:
    """Format seconds in milliseconds."""
    return milliseconds(seconds) or "-"


def value_words(value: Any) -> str:
    """Format a value of a configuration or a host in one line, shortened."""
    if value is None:
        return "none"
    if isinstance(value, list):
        text = " ".join(map(value_words, value)) or "none"
    elif isinstance(value, dict):
        text = ", ".join(f"{name}: {value_words(one)}" for name, one in value.items())
    else:
        text = str(value)
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text)} characters)"


def plain(words: Words) -> str:
    """Return a line for a terminal."""
    return "".join(printable(one.text if isinstance(one, Quoted) else one) for one in words)


def as_text(heading: Iterable[Words], sections: Sequence[Section]) -> str:
    """Return the comparison for a terminal."""
    blocks = ["\n".join(map(plain, heading))]
    for section in sections:
        lines = [section.title, *(f"  {plain(line)}" for line in section.lines)]
        if section.table:
            lines.append(text_table(section.table))
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def text_table(table: Table) -> str:
    """Return an aligned table of at most ROWS rows."""
    from tabulate import tabulate

    rows = [[plain(cell) for cell in row] for row in table.rows[:ROWS]]
    text = tabulate([table.header, *rows], tablefmt="plain", disable_numparse=True)
    more = len(table.rows) - ROWS
    text += f"\n… {more} more rows, see --markdown or --html" if more > 0 else ""
    return "\n".join(f"  {line.rstrip()}" for line in text.splitlines())


def marked(words: Words) -> str:
    """Return a line of Markdown.

    What a file says is a code span, in which nothing is a link, a mention, HTML or a format.
    """
    return "".join(code_span(one.text) if isinstance(one, Quoted) else one for one in words)


def as_markdown(heading: Iterable[Words], sections: Sequence[Section]) -> str:
    """Return the comparison as Markdown, as GitHub shows it."""
    blocks = ["## Two reports compared", *(f"- {marked(line)}" for line in heading)]
    text = "\n".join([blocks[0], "", *blocks[1:]])
    for section in sections:
        text += f"\n\n### {section.title}\n"
        text += "".join(f"\n- {marked(line)}" for line in section.lines)
        if section.table:
            rows = [[*section.table.header], ["---"] * len(section.table.header)]
            rows += [[marked(cell) for cell in row] for row in section.table.rows]
            text += "\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return text + "\n"


def comparison_page(
    comparison: Comparison, heading: Sequence[Words], sections: Sequence[Section]
) -> str:
    """Return the page of a comparison, in the report's own frame and style."""
    parts = HERE / "comparison.html", REPORT / "shell.html", REPORT / "macros.html"
    template = read_template(parts, REPORT / "page.css", REPORT / "page.js")
    content = {"summary": comparison.new.document, "heading": heading, "sections": sections}
    return template.html("comparison.html", content, charts={}, library=False)
