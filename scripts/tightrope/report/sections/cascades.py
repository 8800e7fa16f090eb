"""Report section on cascades: a small and a large model that are served as one."""

from collections.abc import Iterable, Mapping
from typing import Any

from tightrope.report.style.numbers import (
    bounded,
    is_number,
    megabytes,
    percentage,
    points,
    points_interval,
    ratio,
    ratio_interval,
    significant,
    whole,
)

Record = Mapping[str, Any]
# what each verdict looks like, by the style of another one
LOOKS = {
    "use it": "faster",
    "accuracy undecided": "undecided",
    "accuracy dropped": "dropped",
    "no faster": "slower",
    "small alone": "kept",
    "large alone": "slower",
    "disturbed": "disturbed",
    "failed": "dropped",
}


def cascades_section(entries: Iterable[Record], hosts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a part per cascade, in their order.

    Each has its `name`, its `host` where there are several, `verdict` with its `look` and
    `sentence`, `threshold` in words, the `rows` of the small model, the large model and the
    cascade, and a `note` on what is disturbed.
    """
    return [part(entry, hosts) for entry in entries]


def part(entry: Record, hosts: Mapping[str, str]) -> dict[str, Any]:
    """Return the part of one cascade."""
    failed = entry.get("status") == "failed"
    return {
        "name": entry.get("cascade"),
        "host": hosts.get(str(entry.get("host"))),
        "verdict": entry.get("verdict"),
        "look": LOOKS.get(str(entry.get("verdict")), "undecided"),
        "sentence": entry.get("sentence"),
        "threshold": threshold_words(entry),
        "rows": [] if failed or entry.get("share") is None else rows(entry),
        "traffic": traffic(entry),
        "note": entry.get("disturbed"),
        "provisional": entry.get("provisional"),
    }


def rows(entry: Record) -> list[dict[str, Any]]:
    """Return a row for each model alone and for the cascade."""
    samples = (entry.get("agreed") or {}).get("samples")
    return [
        {
            "model": entry.get("small_model"),
            "variant": entry.get("small_variant"),
            "share": None,
            **served(entry, "small", "against_small", "over_small"),
        },
        {
            "model": entry.get("model"),
            "variant": entry.get("variant"),
            "share": None,
            **served(entry, "large", "against_large", "over_large"),
        },
        {
            "model": None,
            "variant": None,
            "share": percentage(entry.get("share"), samples),
            **served(entry, "both", None, None),
        },
    ]


def traffic(entry: Record) -> dict[str, Any] | None:
    """Return rates and tail latency of the three under traffic, None where it was not asked for.

    As in the summary, with the `model` of each row, None of the cascade, and the `largest` rate.
    """
    under = entry.get("traffic")
    if not under:
        return None
    models = {"small": entry.get("small_model"), "large": entry.get("model")}
    rates = [row["samples_per_s"] for row in under["rows"] if is_number(row["samples_per_s"])]
    return {
        **under,
        "rows": [{**row, "model": models.get(row["served"])} for row in under["rows"]],
        "largest": max(rates, default=0.0),
    }


def served(entry: Record, key: str, against: str | None, over: str | None) -> dict[str, Any]:
    """Return accuracy, throughput and memory of `key`, and what the cascade has over it."""
    own = entry.get(key) or {}
    accuracy = own.get("accuracy") or {}
    samples = accuracy.get("samples")
    change = (entry.get(against) if against else None) or {}
    speed = (entry.get(over) if over else None) or {}
    low, high = (significant(own.get(end)) for end in ("low", "high"))
    return {
        "accuracy": percentage(accuracy.get("top1"), samples),
        "change": points(change.get("delta"), samples),
        "change_interval": points_interval({**change, "samples": samples}),
        "kept": change.get("verdict") if key == "large" else None,
        "changed": f"{change['lost']} lost, {change['gained']} gained" if change else None,
        "p_value": bounded(change.get("p_value"), 0.001),
        "samples_per_s": significant(own.get("samples_per_s")),
        "rate_interval": f"{low} to {high}" if low and high else None,
        "ratio": ratio(speed),
        "ratio_interval": ratio_interval(speed),
        "faster": speed.get("verdict"),
        "memory_mb": megabytes(own.get("peak_rss_bytes")),
        "compared": bool(against),
    }


def threshold_words(entry: Record) -> str | None:
    """Say how sure the small model must be, and how that was chosen; None without a threshold."""
    threshold, chosen = entry.get("threshold"), entry.get("chosen")
    if threshold is None or chosen is None:
        return None
    if entry.get("agreement") is None:
        promise = f"no more than {entry['budget_points']:g} of 100 answers become wrong on balance"
        changed = f"{chosen['lost']} right answers are lost and {chosen['gained']} gained"
    else:
        promise = f"{100 * entry['agreement']:g} % of the answers are those of the large model"
        changed = f"{chosen['lost']} answers are others"
    part, samples = percentage(chosen["share"], chosen["samples"]), whole(chosen["samples"])
    return (
        f"The small model answers where its highest probability is at least "
        f"{probability(threshold)}. That is the lowest threshold with which the {samples} "
        f"calibration samples prove, with 95 % confidence, that {promise}: it answers {part} % of "
        f"them, {changed}."
    )


def probability(threshold: float) -> str:
    """Format a threshold with two digits of what it lacks to 1: 0.9987, 0.944, 0.29."""
    rest = 1 - threshold
    digits = 2
    while rest < 0.1 and digits < 9:
        rest, digits = 10 * rest, digits + 1
    return f"{threshold:.{digits}f}"
