"""A comparison as text for a terminal, as Markdown and as a page, with the bounds that it breaks.

What files say controls none of them.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tightrope import report
from tightrope.compare.accuracy import AccuracyChange
from tightrope.compare.compare import Comparison
from tightrope.compare.read import Key
from tightrope.compare.speed import SAME_RECORD, SpeedChange
from tightrope.decide.result import Shape
from tightrope.errors import TightropeError, nearest, printable
from tightrope.report.html import html_of
from tightrope.report.style.marks import code_span
from tightrope.report.style.numbers import TIMES, milliseconds, moment, percentage, plural, points
from tightrope.statistics import Interval

# rows of a table on a terminal, which the other formats have all, and of the changed answers
ROWS, FLIPS = 30, 200
HERE = Path(__file__).parent / "template"
REPORT = Path(report.__path__[0]) / "template"
ORDER = ("slower", "worse", "faster", "better", "open", "same", "not judged")
WHAT = ("slower", "accuracy", "gone")


class Quoted(NamedTuple):
    """Text from a file: a name, a reason, an example. Each format escapes it in its own way."""

    text: str


# the program's own words, or a quotation; a line has several
Part = str | Quoted
Line = Sequence[Part]
Row = dict[str, Part]


class Section(NamedTuple):
    """A part of the comparison: its title, lines of text, and rows of a table by its header."""

    title: str
    lines: Sequence[Line]
    rows: Sequence[Row] = ()


class Bound(NamedTuple):
    """What may not happen; `limit` is a share of the time, or a fraction of the accuracy."""

    what: str
    limit: float


def parse_bound(text: str) -> Bound:
    """Return the bound that a word of the command line names; raise TightropeError."""
    what, colon, number = text.partition(":")
    try:
        limit = 0.0 if what == "gone" else float(number.removesuffix("%")) / 100
    except ValueError:
        limit = math.nan
    if what not in WHAT:
        wrong = f"no such bound{nearest(what, [*WHAT])}"
    elif what == "gone" and colon:
        wrong = "gone has no limit"
    elif 0 <= limit < math.inf and not (what == "accuracy" and number.endswith("%")):
        return Bound(what, limit)
    else:
        wrong = "no limit"
    raise TightropeError(f"--fail-on {text}: {wrong}; give slower:3%, accuracy:0.5 or gone")


def broken(comparison: Comparison, bounds: Iterable[Bound]) -> list[Line]:
    """Return a line for each variant that breaks a bound.

    Raises TightropeError where there is nothing by which a bound could be judged.
    """
    lines: list[Line] = []
    for what, limit in bounds:
        if what == "gone":
            lines += [(*named(key), " is gone: ", Quoted(why)) for key, why in comparison.gone]
        elif what == "slower":
            reasons = {one.reason or "" for one in comparison.speed}
            if SAME_RECORD not in reasons and not any(one.time for one in comparison.speed):
                why = "; ".join(sorted(reasons)) or "no common shape"
                raise TightropeError(f"--fail-on slower: no time can be judged: {why}")
            for row in comparison.speed:
                if row.verdict == "slower" and row.more > limit:
                    at = f" at {shape_words(row.row.shape)} is slower: {change_words(row.time)}"
                    lines.append((*named(row.row.key), f"{at}; allowed are {limit:.1%}"))
        elif not any(one.delta for one in comparison.accuracy):
            raise TightropeError("--fail-on accuracy: no accuracy is in both reports")
        else:
            for one in comparison.accuracy:
                if one.verdict == "worse" and one.delta and -one.delta.value > limit:
                    lost = f" lost accuracy: {points_words(one.delta)} points"
                    lines.append((*named(one.key), f"{lost}; allowed are {100 * limit:g}"))
    return lines


def is_open(change: SpeedChange, bounds: Iterable[Bound]) -> bool:
    """Return whether a row is beyond a bound by estimate, and not beyond the noise."""
    limit = min((one.limit for one in bounds if one.what == "slower"), default=math.inf)
    return change.verdict == "same" and change.more > limit


def named(key: Key) -> Line:
    """Return model and variant."""
    return Quoted(key.model), " ", Quoted(key.variant)


def columns_of(key: Key) -> Row:
    """Return model and variant as the first cells of a row."""
    return {name: Quoted(value) for name, value in key._asdict().items()}


def change_words(time: Interval | None) -> str:
    """Format a time ratio: 1.05 with the times sign, and its interval; a dash without one."""
    return f"{time.value:.3f}{TIMES} ({time.low:.3f} to {time.high:.3f})" if time else "-"


def points_words(delta: Interval | None) -> str:
    """Format a change of accuracy in percentage points, with its interval; a dash without one."""
    value, low, high = (points(one) for one in delta or (None, None, None))
    return f"{value} ({low} to {high})" if delta else "-"


def shape_words(shape: Shape) -> str:
    """Format a shape as its sizes: 1x128, padded texts as `32x128, 64 tokens`."""
    sizes = shape.sizes
    tokens = sizes.pop("tokens", None)
    joined = "x".join(map(str, sizes.values())) or "any shape"
    return joined if tokens is None else f"{joined}, {tokens} tokens"


def value_words(value: Any) -> str:
    """Format a value of a configuration or a host in one line, shortened."""
    if isinstance(value, list):
        text = " ".join(map(value_words, value)) or "none"
    elif isinstance(value, dict):
        text = ", ".join(f"{name}: {value_words(one)}" for name, one in value.items())
    else:
        text = "none" if value is None else str(value)
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text)} characters)"


def heading(comparison: Comparison) -> list[Line]:
    """Return which reports are compared."""
    return [
        (name, Quoted(str(one.path)), ", made ", Quoted(moment(one.document.created) or ""))
        for name, one in {"old: ": comparison.old, "new: ": comparison.new}.items()
    ]


def sections(
    comparison: Comparison, bounds: Sequence[Bound], broken: Sequence[Line]
) -> list[Section]:
    """Return the sections, what breaks a bound first; those without content are left out.

    The last one has what only one report has, and recommendations that are others.
    """
    moves: list[Line] = [
        ("gone: ", *named(key), ", ", Quoted(reason)) for key, reason in comparison.gone
    ]
    moves += [("new: ", *named(key)) for key in comparison.came]
    for one in comparison.choices:
        old, new = Quoted(one.old or "none"), Quoted(one.new or "none")
        at = f" at {shape_words(one.shape)}: "
        moves.append(("recommended for ", Quoted(one.model), at, old, " before, now ", new))
    found = [
        Section("Bounds", broken or [("no bound is broken",)] * bool(bounds)),
        cause_section(comparison),
        speed_section(comparison.speed, bounds),
        accuracy_section(comparison.accuracy),
        flip_section(comparison.accuracy),
        Section("What came and went", moves),
    ]
    return [one for one in found if one.lines or one.rows]


def cause_section(comparison: Comparison) -> Section:
    """Return what is different, the likely cause first."""
    title, causes = "What is different", comparison.causes
    if not causes:
        return Section(title, [("nothing that the summaries hold is different",)])
    first, likely = causes[0]
    if not comparison.moved:
        words = "nothing changed beyond the noise; what would have been suspected first: "
    elif likely:
        words = "the likely cause of what changed beyond the noise: "
    else:
        words = "none of these concerns what changed beyond the noise; the first of them: "
    rows: list[Row] = [
        {
            "what": Quoted(one.name),
            "kind": one.kind + ", the likely cause" * (likely and one is first),
            "old": Quoted(value_words(one.old)),
            "new": Quoted(value_words(one.new)),
            "concerns": plural(count, "variant") if count else "no variant by itself",
        }
        for one, count in ((one, len(one.concerns)) for one, _ in causes)
    ]
    likeliest = f"{first.name}: {value_words(first.old)} → {value_words(first.new)}"
    return Section(title, [(words, Quoted(likeliest))], rows)


def speed_section(changes: Sequence[SpeedChange], bounds: Sequence[Bound]) -> Section:
    """Return the times, the rows that changed first."""
    if not changes:
        return Section("Time", [("no variant was timed at a common shape",)])
    verdicts = {one.row: "open" if is_open(one, bounds) else one.verdict for one in changes}
    lines = [(counted(verdicts.values()) + "; time is relative to the reference of its row",)]
    if "open" in verdicts.values():
        words = "open: beyond a bound by estimate, but within the noise; measure again to know"
        lines.append((words,))
    rows: list[Row] = [
        {
            **columns_of(one.row.key),
            "shape": shape_words(one.row.shape),
            "old, ms": milliseconds(one.old_s) or "-",
            "new, ms": milliseconds(one.new_s) or "-",
            "time": change_words(one.time),
            "reference": Quoted(one.reference) if one.reference else "-",
            "verdict": ": ".join(filter(None, (verdicts[one.row], one.reason))),
        }
        for one in sorted(changes, key=lambda one: (ORDER.index(verdicts[one.row]), one.row))
    ]
    return Section("Time", lines, rows)


def counted(verdicts: Iterable[str]) -> str:
    """Format how many rows have which verdict."""
    counts = Counter(verdicts)
    return ", ".join(f"{counts[one]} {one}" for one in ORDER if counts[one])


def accuracy_section(changes: Sequence[AccuracyChange]) -> Section:
    """Return the accuracies, those that changed first."""
    reasons = sorted({one.why_totals for one in changes if one.why_totals})
    lines: list[Line] = [(counted(one.verdict for one in changes),)] if changes else []
    lines += [("from totals alone: ", Quoted(reason)) for reason in reasons[:5]]
    rows: list[Row] = [
        {
            **columns_of(one.key),
            "old, %": percentage(one.old, one.samples) or "-",
            "new, %": percentage(one.new, one.samples) or "-",
            "points": points_words(one.delta),
            "changed answers": "-" if one.flips is None else f"{len(one.flips)} of {one.samples}",
            "from": one.source or "-",
            "verdict": ": ".join(filter(None, (one.verdict, one.reason))),
        }
        for one in sorted(changes, key=lambda one: (ORDER.index(one.verdict), one.key))
    ]
    return Section("Accuracy", lines, rows)


def flip_section(changes: Sequence[AccuracyChange]) -> Section:
    """Return the changed answers, at most FLIPS of them."""
    flips = [(one.key, flip) for one in changes for flip in one.flips or ()]
    rows: list[Row] = [
        {
            **columns_of(key),
            "example": str(flip.example),
            "label": Quoted(str(flip.label)),
            "old answer": Quoted(str(flip.old)),
            "new answer": Quoted(str(flip.new)),
            "text": Quoted(flip.text) if flip.text else "-",
        }
        for key, flip in flips[:FLIPS]
    ]
    more = len(flips) - FLIPS
    lines = [(f"{more} more are not listed",)] if more > 0 else []
    return Section("Changed answers", lines, rows)


def plain(line: Line) -> str:
    """Return a line for a terminal."""
    return "".join(printable(one.text if isinstance(one, Quoted) else one) for one in line)


def marked(line: Line) -> str:
    """Return a line of Markdown: quotations are code spans, in which nothing is a format."""
    return "".join(code_span(one.text) if isinstance(one, Quoted) else one for one in line)


def as_text(heading: Iterable[Line], sections: Sequence[Section]) -> str:
    """Return the comparison for a terminal, with at most ROWS rows of each table."""
    from tabulate import tabulate

    blocks = ["\n".join(map(plain, heading))]
    for section in sections:
        lines = [*map(plain, section.lines)]
        if section.rows:
            rows = [[plain([cell]) for cell in row.values()] for row in section.rows[:ROWS]]
            table = tabulate([[*section.rows[0]], *rows], tablefmt="plain", disable_numparse=True)
            lines += [line.rstrip() for line in table.splitlines()]
        if (more := len(section.rows) - ROWS) > 0:
            lines.append(f"… {more} more rows, see --markdown or --html")
        blocks.append("\n  ".join([section.title, *lines]))
    return "\n\n".join(blocks) + "\n"


def as_markdown(heading: Iterable[Line], sections: Sequence[Section]) -> str:
    """Return the comparison as Markdown, as GitHub shows it."""
    text = "## Two reports compared\n" + "".join(f"\n- {marked(line)}" for line in heading)
    for section in sections:
        text += f"\n\n### {section.title}\n"
        text += "".join(f"\n- {marked(line)}" for line in section.lines)
        if section.rows:
            rows = [[*section.rows[0]], ["---"] * len(section.rows[0])]
            rows += [[marked([cell]) for cell in row.values()] for row in section.rows]
            text += "\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return text + "\n"


def comparison_page(
    comparison: Comparison, heading: Sequence[Line], sections: Sequence[Section]
) -> str:
    """Return the page of a comparison, in the report's own frame and style."""
    parts = HERE / "comparison.html", REPORT / "shell.html", REPORT / "macros.html"
    files = {"style": REPORT / "page.css", "script": REPORT / "page.js"}
    content: dict[str, Any] = {"summary": comparison.new.document, "charts": {}}
    content |= {"heading": heading, "sections": sections}
    return html_of(content, template=parts, page="comparison.html", **files)
