"""Number formats of the report: no more digits than the measurement supports.

Every function returns None for a missing value; the template shows it as a dash.
"""

import math
from collections.abc import Mapping
from typing import Any

from tightrope.decide.result import Ratio, Shape
from tightrope.runtimes.executed import products_in, unknown_types, wanted_types
from tightrope.summary.profile import OUTSIDE, ProfiledCall, Roofline

MINUS = "\N{MINUS SIGN}"
JOINED = "\N{NO-BREAK SPACE}"
TIMES = "\N{MULTIPLICATION SIGN}"
# groups of operators that a row names
NAMED = 3


def significant(value: float | None, digits: int = 3) -> str | None:
    """Format `value` with `digits` significant digits, thousands separated, without exponent."""
    if value is None:
        return None
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    exponent = math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(digits - 1 - exponent, 0)}f}".replace("-", MINUS)


def bounded(value: float | None, floor: float, factor: float = 1) -> str | None:
    """Format `value * factor` with two significant digits, "< floor" if positive and below it."""
    if value is not None and 0 < value * factor < floor:
        return f"<{JOINED}{floor:f}".rstrip("0")
    return None if value is None else significant(value * factor, 2)


def milliseconds(seconds: float | None) -> str | None:
    """Format seconds as milliseconds, joules as millijoules: 0.0098 gives "9.80"."""
    return None if seconds is None else significant(seconds * 1e3)


def percent(share: float | None) -> str | None:
    """Format a share in whole percent: 0.55 gives "55 %"."""
    return None if share is None else f"{100 * share:.0f} %"


def megabytes(size: float | None) -> str | None:
    """Format bytes as decimal megabytes: 90,900,000 gives "90.9"."""
    return None if size is None else significant(size * 1e-6)


def whole(value: float | None) -> str | None:
    """Format a count with thousands separated."""
    return None if value is None else f"{round(value):,}"


def plural(count: int, word: str) -> str:
    """Format a count with its noun: "1 shape", "2 shapes"."""
    return f"{whole(count)} {word}{'' if count == 1 else 's'}"


def point_decimals(samples: int | None) -> int:
    """Return the decimals of a percentage over `samples`, about the resolution of one sample."""
    count = 1000 if samples is None else samples
    return 0 if count < 100 else 1 if count < 10_000 else 2


def percentage(fraction: float | None, samples: int | None = None) -> str | None:
    """Format a fraction in percent, without the percent sign: 0.783 gives "78.3"."""
    return None if fraction is None else f"{100 * fraction:.{point_decimals(samples)}f}"


def points(fraction: float | None, samples: int | None = None) -> str | None:
    """Format an accuracy difference in signed percentage points: -0.012 gives -1.2.

    It has no sign if it rounds to zero.
    """
    if fraction is None:
        return None
    text = f"{100 * fraction:+.{point_decimals(samples)}f}"
    return text[1:] if not float(text) else text.replace("-", MINUS)


def points_up(fraction: float | None, samples: int | None = None) -> str | None:
    """Format a drop in unsigned percentage points, rounded up so as not to understate it."""
    if fraction is None:
        return None
    decimals = point_decimals(samples)
    steps = math.ceil(round(100 * fraction * 10**decimals, 6))
    return f"{steps / 10**decimals:.{decimals}f}"


def points_interval(low: float | None, high: float | None, samples: int | None) -> str | None:
    """Format the ends of the 95 % confidence interval of an accuracy change: "+0.2 to +1.7"."""
    ends = [points(end, samples) for end in (low, high)]
    return f"{ends[0]} to {ends[1]}" if all(ends) else None


def change_interval(found: Any, samples: int | None) -> str | None:
    """Format the interval of an entry with a change of accuracy."""
    return points_interval(found.delta_low, found.delta_high, samples)


def ratio_decimals(found: Ratio) -> int:
    """Return two decimals, one if the interval is wider than 1 or the ratio at least 10."""
    wide = found.low is not None and found.high is not None and found.high - found.low > 1
    return 1 if wide or (found.ratio or 0.0) >= 10 else 2


def ratio(found: Ratio | None) -> str | None:
    """Format a speed-up: 4.18 with the times sign."""
    if not found or found.ratio is None:
        return None
    return f"{found.ratio:,.{ratio_decimals(found)}f}{TIMES}"


def ratio_interval(found: Ratio | None) -> str | None:
    """Format the 95 % confidence interval of a speed-up: "4.02 to 4.35"."""
    if not found or found.low is None or found.high is None:
        return None
    decimals = ratio_decimals(found)
    return f"{found.low:,.{decimals}f} to {found.high:,.{decimals}f}"


def plus_minus(mean: str | None, deviation: str | None) -> str | None:
    """Join a mean and a sample standard deviation: "78.3 ± 0.4"; None without a mean."""
    return f"{mean} \N{PLUS-MINUS SIGN} {deviation}" if mean and deviation else mean


def gain(value: float | None) -> str | None:
    """Format a ratio without interval to two digits: 2.314 gives 2.3 with the times sign."""
    text = significant(value, 2)
    return f"{text}{TIMES}" if text else None


def ends(low: float | None, high: float | None, digits: int = 3) -> str | None:
    """Format an interval: "1,200 to 1,240"; None where there is none."""
    texts = [significant(end, digits) for end in (low, high)]
    return f"{texts[0]} to {texts[1]}" if all(texts) else None


def shape_label(shape: Shape) -> str:
    """Describe a shape: batch 16 and 128 tokens, 64 of 128 tokens, batch 1 and 64 by 64 pixels."""
    parts = [f"batch{JOINED}{shape.batch:,}"] if shape.batch else []
    if shape.sequence:
        real = f"{shape.tokens:,}{JOINED}of{JOINED}" if shape.tokens else ""
        parts.append(f"{real}{shape.sequence:,}{JOINED}tokens")
    if shape.height and shape.width:
        area = (f"{shape.height:,}", TIMES, f"{shape.width:,}", "pixels")
        parts.append(JOINED.join(area))
    return " \N{MIDDLE DOT} ".join(parts) or "any shape"


def moment(text: str | None) -> str | None:
    """Format an ISO date-time in UTC as "2026-11-20 22:14 UTC", other text unchanged."""
    if not text or len(text) < 16 or text[10] not in "T ":
        return text
    return f"{text[:10]} {text[11:16]} UTC"


def executed(counts: Mapping[str, Mapping[str, int]] | None) -> str | None:
    """Count operators by executed precision, most first: "int8 36, fp32 31"."""
    totals: dict[str, int] = {}
    for precisions in (counts or {}).values():
        for precision, count in precisions.items():
            totals[precision] = totals.get(precision, 0) + count
    order = sorted(totals, key=lambda name: (-totals[name], name))
    return ", ".join(f"{name} {totals[name]:,}" for name in order) or None


def products(counts: Mapping[str, Mapping[str, int]] | None, precision: str) -> str | None:
    """Say how many matrix products ran in the precision of a variant: "int8 in 36 of 38"."""
    ran, every = products_in(counts or {}, precision)
    wanted = wanted_types(precision)
    held = [name for name in wanted if products_in(counts or {}, name)[0]]
    return f"{' or '.join(held or wanted)} in {ran:,} of {every:,}" if every else None


def executed_otherwise(
    counts: Mapping[str, Mapping[str, int]] | None, precision: str
) -> str | None:
    """Name the types of matrix products that are none of ours: "types unknown: Float9".

    Where there are none, say whether fewer than half of the products ran in the precision of a
    variant.
    """
    if unknown := unknown_types(counts) if counts else []:
        return f"types unknown: {', '.join(unknown)}"
    ran, every = products_in(counts or {}, precision)
    return "mostly in another precision" if 2 * ran < every else None


def of_peak(roofline: Roofline | None) -> str | None:
    """Return the share of the machine's peak that a call reaches, and that memory allows.

    None where either is not known.
    """
    if roofline is None or not roofline.peak_per_s or not roofline.roof_per_s:
        return None
    peak, roof = roofline.peak_per_s, roofline.roof_per_s
    reached = percent(roofline.operations_per_s / peak)
    return f"{reached}, memory allows {percent(roof / peak)}" if roof < peak else reached


def largest_groups(call: ProfiledCall) -> str | None:
    """Return the groups that take most of a call, with their shares; None without a profiler."""
    if not call.groups and not call.outside:
        return None
    parts = {one.group: one.share for one in call.groups} | {OUTSIDE: call.outside or 0.0}
    largest = sorted(parts.items(), key=lambda part: -part[1])[:NAMED]
    return ", ".join(f"{name} {percent(share)}" for name, share in largest)
