"""A comparison as sections of text and tables, for every format."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from tightrope.compare.accuracy import AccuracyChange
from tightrope.compare.bounds import Bound, is_open
from tightrope.compare.compare import Comparison
from tightrope.compare.differences import Difference
from tightrope.compare.formats import (
    Quoted,
    Section,
    Table,
    Words,
    change_words,
    points_words,
    shape_words,
    time_words,
    value_words,
)
from tightrope.compare.speed import SpeedChange
from tightrope.report.style.numbers import moment, percentage

ORDER = ("slower", "worse", "faster", "better", "open", "same", "not judged")
FLIPS = 200
SOURCES = {
    "records": "the accuracy records",
    "flips": "the flips of both summaries",
    "totals": "the totals alone",
}


def sections(
    comparison: Comparison, bounds: Sequence[Bound], broken: Sequence[Words]
) -> list[Section]:
    """Return the sections, what breaks a bound first; those without content are left out."""
    found = [
        Section("Bounds", broken or [Words("no bound is broken")] * bool(bounds)),
        cause_section(comparison),
        speed_section(comparison.speed, bounds),
        accuracy_section(comparison.accuracy),
        flip_section(comparison.accuracy),
        Section("What came and went", [*came_and_went(comparison)]),
    ]
    return [one for one in found if one.lines or one.table]


def heading(comparison: Comparison) -> list[Words]:
    """Return which reports are compared."""
    return [
        Words(f"{name}: ", Quoted(str(one.path)), ", made ", Quoted(moment(one.created) or ""))
        for name, one in (("old", comparison.old), ("new", comparison.new))
    ]


def cause_section(comparison: Comparison) -> Section:
    """Return what is different, the likely cause first."""
    causes = comparison.causes
    if not causes:
        return Section("What is different", [Words("nothing that the summaries hold is different")])
    first, concerned = causes[0]
    if not comparison.moved:
        words = "nothing changed beyond the noise; what would have been suspected first: "
    elif concerned:
        words = "the likely cause of what changed beyond the noise: "
    else:
        words = "none of these concerns what changed beyond the noise; the first of them: "
    likely = bool(comparison.moved) and concerned
    likeliest = f"{first.name}: {value_words(first.old)} → {value_words(first.new)}"
    rows = [cause_row(one, likely and number == 0) for number, (one, _) in enumerate(causes)]
    header = ("what", "kind", "old", "new", "concerns")
    return Section("What is different", [Words(words, Quoted(likeliest))], Table(header, rows))


def cause_row(one: Difference, likely: bool) -> list[Words]:
    """Return the cells of a difference."""
    count = len(one.concerns)
    concerns = f"{count} variant" + "s" * (count != 1) if count else "no variant by itself"
    kind = f"{one.kind}, the likely cause" if likely else one.kind
    values = [Words(Quoted(value_words(value))) for value in (one.old, one.new)]
    return [Words(Quoted(one.name)), Words(kind), *values, Words(concerns)]


def speed_section(changes: Sequence[SpeedChange], bounds: Sequence[Bound]) -> Section:
    """Return the times, the rows that changed first."""
    if not changes:
        return Section("Time", [Words("no variant was timed at a common shape")])
    verdicts = {one.row: "open" if is_open(one, bounds) else one.verdict for one in changes}
    lines = [Words(counted(verdicts.values()), "; time is relative to the reference of its row")]
    if "open" in verdicts.values():
        lines.append(
            Words("open: beyond a bound by estimate, but within the noise; measure again to know")
        )
    ordered = sorted(changes, key=lambda one: (ORDER.index(verdicts[one.row]), one.row))
    header = ("model", "variant", "shape", "old, ms", "new, ms", "time", "reference", "verdict")
    rows = [speed_row(one, verdicts[one.row]) for one in ordered]
    return Section("Time", lines, Table(header, rows))


def counted(verdicts: Iterable[str]) -> str:
    """Format how many rows have which verdict."""
    counts = Counter(verdicts)
    return ", ".join(f"{counts[one]} {one}" for one in ORDER if counts[one])


def speed_row(one: SpeedChange, verdict: str) -> list[Words]:
    """Return the cells of a row of the times."""
    why = f"{verdict}: {one.reason}" if one.reason else verdict
    return [
        Words(Quoted(one.row.model)),
        Words(Quoted(one.row.variant)),
        Words(shape_words(one.row.shape)),
        Words(time_words(one.old_s)),
        Words(time_words(one.new_s)),
        Words(change_words(one.time) if one.time else "-"),
        Words(Quoted(one.reference)) if one.reference else Words("-"),
        Words(why),
    ]


def accuracy_section(changes: Sequence[AccuracyChange]) -> Section:
    """Return the accuracies, those that changed first."""
    if not changes:
        return Section("Accuracy", [])
    lines = [Words(counted([one.verdict for one in changes]))]
    reasons = {one.why_totals for one in changes if one.why_totals}
    lines += [Words("from totals alone: ", Quoted(reason)) for reason in sorted(reasons)[:5]]
    ordered = sorted(changes, key=lambda one: (ORDER.index(one.verdict), one.key))
    header = (
        "model",
        "variant",
        "old, %",
        "new, %",
        "points",
        "changed answers",
        "from",
        "verdict",
    )
    return Section("Accuracy", lines, Table(header, [accuracy_row(one) for one in ordered]))


def accuracy_row(one: AccuracyChange) -> list[Words]:
    """Return the cells of a row of the accuracies."""
    flips = "-" if one.flips is None else f"{len(one.flips)} of {one.samples}"
    return [
        Words(Quoted(one.key.model)),
        Words(Quoted(one.key.variant)),
        *(Words(percentage(value, one.samples) or "-") for value in (one.old, one.new)),
        Words(points_words(one.delta) if one.delta else "-"),
        Words(flips),
        Words(SOURCES[one.source] if one.source else "-"),
        Words(f"{one.verdict}: {one.reason}" if one.reason else one.verdict),
    ]


def flip_section(changes: Sequence[AccuracyChange]) -> Section:
    """Return the changed answers, at most FLIPS of them."""
    flips = [(one.key, flip) for one in changes for flip in one.flips or ()]
    if not flips:
        return Section("Changed answers", [])
    more = len(flips) - FLIPS
    lines = [Words(f"{more} more are not listed")] if more > 0 else []
    rows = [
        [
            Words(Quoted(key.model)),
            Words(Quoted(key.variant)),
            Words(str(flip.example)),
            *(Words(Quoted(str(one))) for one in (flip.label, flip.old, flip.new)),
            Words(Quoted(flip.text)) if flip.text else Words("-"),
        ]
        for key, flip in flips[:FLIPS]
    ]
    header = ("model", "variant", "example", "label", "old answer", "new answer", "text")
    return Section("Changed answers", lines, Table(header, rows))


def came_and_went(comparison: Comparison) -> Iterator[Words]:
    """Yield what only one report has, and recommendations that are others."""
    for key, reason in comparison.gone:
        yield Words("gone: ", Quoted(key.model), " ", Quoted(key.variant), ", ", Quoted(reason))
    for key in comparison.came:
        yield Words("new: ", Quoted(key.model), " ", Quoted(key.variant))
    for one in comparison.choices:
        yield Words(
            "recommended for ",
            Quoted(one.model),
            f" at {shape_words(one.shape)}: ",
            Quoted(one.old or "none"),
            " before, now ",
            Quoted(one.new or "none"),
        )
