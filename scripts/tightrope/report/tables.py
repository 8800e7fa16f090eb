"""Tables of the page, marks of values in their cells, as HTML, and variants that have a reason.

A template calls `table` with titles and rows as data, and has the cells of a row in the call. These
are functions, since macros of a template take half of the time of a page.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from markupsafe import Markup, escape

from tightrope.decide.phrases import said
from tightrope.decide.result import Ratio
from tightrope.records.record import TRAINING
from tightrope.report.style.numbers import points_up


def table(
    label: str,
    titles: Iterable[str],
    rows: Iterable[Any],
    style: str = "",
    *,
    tall: bool = False,
    caller: Callable[[Any], str],
) -> Markup:
    """Return a table in a region that scrolls, which is named `label`.

    Titles are as for `heading`, and an empty one has no column. `style` are CSS classes, of which
    that of a sortable table gives it buttons; `caller` returns the cells of a row.
    """
    buttons = style == "sortable"
    heads = Markup().join(heading(title, buttons=buttons) for title in titles if title)
    body = Markup().join(Markup("<tr>{}</tr>\n").format(Markup(caller(row))) for row in rows)
    classes = f' class="{style}"' if style else ""
    return Markup(
        f'<div class="scroll{" tall" if tall else ""}" role="region" tabindex="0" '
        f'aria-label="{escape(label)}">\n<table{classes}>\n<thead><tr>{heads}</tr></thead>\n'
        f"<tbody>{body}</tbody></table>\n</div>\n"
    )


def heading(title: str, *, buttons: bool) -> Markup:
    """Return the heading of a column, with a button that sorts by it where it is no interval.

    A title that begins with # is that of numbers, with #+ of those of which more is better, which
    are sorted downwards first; | breaks its line.
    """
    kind = "number down" if title.startswith("#+") else "number" if title.startswith("#") else ""
    text = escape(title.lstrip("#+")).replace("|", Markup("<br>"))
    if buttons and "95 %" in title:
        text = Markup('<span class="plain">{}</span>').format(text)
    elif buttons:
        arrow = Markup('<span class="arrow" aria-hidden="true"></span>')
        text = Markup('<button type="button">{}{}</button>').format(text, arrow)
    return Markup('<th scope="col"{}>{}</th>').format(
        Markup(' class="{}"').format(kind) if kind else "", text
    )


def folded(label: str, titles: Iterable[str], rows: Sequence[Any], **options: Any) -> Markup:
    """Return the table of a chart, which opens below it."""
    summary = f"<summary>All {len(rows)} as a table</summary>"
    return Markup(f"<details>{summary}\n{table(label, titles, rows, **options)}</details>")


def cell(text: Any, reason: Any = "not recorded") -> Markup:
    """Return a cell with a text, with a dash and the reason if it is None."""
    return Markup(f"<td>{value(text, reason)}</td>")


def number(text: Any, reason: Any = "not recorded") -> Markup:
    """Return a cell with a number, with a dash and the reason if it is None."""
    return Markup(f'<td class="number">{value(text, reason)}</td>')


def bar(
    text: Any, raw: float | None, largest: float | None, reason: Any = "not recorded"
) -> Markup:
    """Return the cell of a number with a bar, which the largest value fills."""
    share = f"--share: {100 * (raw or 0) / (largest or 1):.1f}%"
    return Markup(f'<td class="number bar" style="{share}">{value(text, reason)}</td>')


def sorted_number(text: Any, raw: Any, reason: Any = "not recorded") -> Markup:
    """Return the cell of a number; the table is sorted by its `raw` value."""
    key = "" if raw is None else escape(raw)
    return Markup(f'<td class="number" data-value="{key}">{value(text, reason)}</td>')


def with_interval(text: Any, interval: Any) -> Markup | None:
    """Return a value with its interval below it, None without a value."""
    shown = Markup('{}<br><span class="interval">{}</span>')
    return None if text is None else shown.format(text, interval or "")


def drawn(found: Ratio | None, largest: float) -> Markup:
    """Return the interval of a speed-up as a bar from 0 to the largest with a tick at 1."""
    if found is None or found.low is None or found.high is None:
        return Markup()
    places = zip(("low", "high", "one"), (found.low, found.high, 1), strict=True)
    style = "; ".join(f"--{name}: {100 * one / largest:.1f}%" for name, one in places)
    word = escape(found.verdict)
    return Markup(f'<span class="drawn {word}" style="{style}"></span>')


def missing(reason: Any) -> Markup:
    """Return a dash with the reason why there is no value."""
    text = escape(reason)
    unseen = f'<span class="unseen"> {text}</span>'
    return Markup(f'<span class="none" title="{text}">\N{EN DASH}{unseen}</span>')


def value(text: Any, reason: Any = "not recorded") -> Markup:
    """Return a value, a dash with the reason if it is None."""
    return missing(reason) if text is None else escape(text)


def verdict(word: Any, words: Any = None) -> Markup:
    """Return a verdict in its style, nothing without one; `words` may say it in another way."""
    shown = escape(word if words is None else words)
    return Markup(f'<span class="verdict {escape(word)}">{shown}</span>') if word else Markup()


def provisional(marked: bool | None) -> Markup:
    """Return the mark of numbers from disturbed times, nothing where they are not."""
    return Markup(f" {verdict('provisional')}") if marked else Markup()


def noisy() -> Markup:
    """Return the mark of a noisy row, a link to what that means."""
    return Markup('<a class="verdict noisy" href="#steady">noisy</a>')


def quiet(text: Any) -> Markup:
    """Return text after another in a quiet colour, nothing without any."""
    return Markup(' <span class="quiet">{}</span>').format(text) if text else Markup()


def name(variant: Any) -> Markup:
    """Return the name of a variant."""
    return Markup(f'<code class="variant">{escape(variant)}</code>')


def names(variants: Iterable[Any], last: str = ", ") -> Markup:
    """Return the names of variants, `last` between the last two."""
    named = [name(one) for one in variants]
    if len(named) > 1:
        named[-2:] = [named[-2] + last + named[-1]]
    return Markup(", ").join(named)


def variant(named: Any, host: Any = None) -> Markup:
    """Return the first cell of a row, with a variant and its host where there are several."""
    return Markup(f'<th scope="row">{name(named)}{quiet(host)}</th>')


def answer(text: Any, right: bool) -> Markup:
    """Return an answer in the style of a right or of a wrong one."""
    unseen = Markup('{}<span class="unseen">\n  (right)</span>')
    return verdict("right", unseen.format(text)) if right else verdict("wrong", text)


def remarked(remarks: Iterable[tuple[str, Sequence[str]]]) -> Markup:
    """Return words on a row, which open their reasons."""
    pairs = list(remarks)
    styled = ("noisy", "disturbed", "provisional")
    kinds = ((f"verdict {word}" if word in styled else "status", word) for word, _ in pairs)
    words = (Markup('<span class="{}">{}</span>').format(*one) for one in kinds)
    reasons = (Markup("<li>{}</li>").format(one) for _, told in pairs for one in told)
    shown = Markup('<details class="remarks"><summary>{}</summary>\n<ul>{}</ul></details>')
    return shown.format(Markup(", ").join(words), Markup().join(reasons))


def failures(entries: Iterable[Any]) -> int:
    """Return how many entries say that they failed."""
    return sum(one.status == "failed" for one in entries)


def by_reason(rejected: Iterable[Any]) -> list[tuple[Any, list[Any]]]:
    """Return (reason, variants) pairs of rejected variants."""
    return [*grouped((said(one.reason), one.variant) for one in rejected).items()]


def too_small(judged: Iterable[Any]) -> list[tuple[str, list[Any]]]:
    """Return the drops that are detectable, in points, where that is more than the budget.

    Each with the variants whose split is too small to detect a smaller one.
    """
    drops = (
        (points_up(one.accuracy.detectable, one.accuracy.samples), one.variant)
        for one in judged
        if one.accuracy.large_enough is False
    )
    return [*grouped((drop, variant) for drop, variant in drops if drop).items()]


def alike(variants: Iterable[Any]) -> list[tuple[Any, list[Any]]]:
    """Return pairs of (verdict, its reasons) and the variants that have both."""
    told = (((one.verdict, tuple(map(said, one.why))), one.variant) for one in variants)
    return [*grouped(told).items()]


def grouped(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    """Return the values of each key, in order of first appearance."""
    groups: dict[Any, list[Any]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def not_run(entries: Iterable[Any], status: str) -> list[tuple[str, list[Any]]]:
    """Return (reason, [(model, variants)]) of the entries of that status.

    A training has no variant.
    """
    reasons = grouped(
        (one.reason or "no reason was recorded", (one.model, getattr(one, "variant", TRAINING)))
        for one in entries
        if one.status == status
    )
    return [(reason, [*grouped(pairs).items()]) for reason, pairs in reasons.items()]
