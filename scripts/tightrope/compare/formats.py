"""A comparison as text for a terminal and as Markdown; what files say can control neither."""

from collections.abc import Iterable, Sequence

from tightrope.compare.text import Quoted, Section, Table, Words
from tightrope.errors import printable
from tightrope.report.style.marks import code_span

# rows of a table on a terminal; the other formats have all
ROWS = 30


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
            text += "\n\n" + markdown_table(section.table)
    return text + "\n"


def markdown_table(table: Table) -> str:
    """Return a table of Markdown."""
    rows = [[*table.header], ["---"] * len(table.header)]
    rows += [[marked(cell) for cell in row] for row in table.rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
