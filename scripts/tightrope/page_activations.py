"""What the report says of models that differ in their activation: accuracy beside speed."""

from collections.abc import Mapping, Sequence
from typing import Any

from tightrope.activation_chart import activation_chart
from tightrope.page_figures import row_at, titled
from tightrope.page_numbers import (
    is_positive,
    percentage,
    points,
    points_interval,
    ratio,
    ratio_interval,
    shape_label,
    shape_of,
)
from tightrope.page_training import spread_words
from tightrope.variants import parse

Record = Mapping[str, Any]
Shape = tuple[tuple[str, int], ...]


def activations_section(summary: Record, hosts: Mapping[str, str]) -> list[dict[str, Any]]:
    """A table and its figures, one for each shape, of each reference, host and device.

    `hosts` are names by fingerprint, empty where there is one.
    """
    groups: dict[Any, list[Record]] = {}
    for entry in summary.get("activations") or ():
        key = tuple(entry.get(name) for name in ("reference", "host", "device"))
        groups.setdefault(key, []).append(entry)
    return [table(summary, *key, group, hosts) for key, group in groups.items()]


def table(
    summary: Record,
    reference: str,
    host: str,
    device: str,
    group: Sequence[Record],
    hosts: Mapping[str, str],
) -> dict[str, Any]:
    """One table: `columns` are (shape, variant), each of `rows` has a cell for each of them.

    The first row is the reference, whose cells are its own results; the others follow by accuracy.
    """
    timed = [row for entry in group for row in entry.get("latency") or ()]
    shapes = sorted({shape_of(row) for row in timed if shape_of(row)}, key=sizes)
    variants = list(dict.fromkeys(row["variant"] for row in timed))
    columns = [(shape, variant) for shape in shapes for variant in variants]
    results = {
        result["variant"]: result
        for result in summary.get("results") or ()
        if (result.get("model"), result.get("host")) == (reference, host)
    }
    trainings = {
        one["model"]: one
        for one in summary.get("training") or ()
        if one.get("status") == "ok" and one.get("host") == host
    }
    named = {
        name: (facts or {}).get("activation") or name
        for name, facts in (summary.get("models") or {}).items()
    }
    others = sorted(group, key=lambda entry: -((entry.get("accuracy") or {}).get("top1") or 0))
    baseline = ((summary.get("models") or {}).get(reference) or {}).get("baselines") or {}
    own = results.get(baseline.get(device)) or {}
    rows = [
        row_of(reference, named, own.get("accuracy"), trainings.get(reference), plain=True),
        *(
            row_of(entry["model"], named, entry.get("accuracy"), trainings.get(entry["model"]))
            for entry in others
        ),
    ]
    for row, entry in zip(rows[1:], others, strict=True):
        row["cells"] = [cell_of(entry, shape, variant) for shape, variant in columns]
    rows[0]["cells"] = [
        {"p50_s": (row_at(results.get(variant) or {}, shape) or {}).get("p50_s")}
        for shape, variant in columns
    ]
    return {
        "reference": reference,
        "activation": rows[0]["activation"],
        "host": hosts.get(host),
        "shapes": [(shape_label(shape), len(variants)) for shape in shapes],
        "variants": [variant for _, variant in columns],
        "rows": rows,
        "trained": any(row["epoch_words"] for row in rows),
        "device_memory": device == "cuda",
        "figures": [
            figure
            for place, shape in enumerate(shapes)
            if (figure := figure_of(rows, shape, variants, place, hosts.get(host)))
        ],
    }


def sizes(shape: Shape) -> list[int]:
    """What shapes are ordered by."""
    return [size for _, size in shape]


def row_of(
    model: str,
    named: Mapping[str, str],
    accuracy: Record | None,
    training: Record | None,
    *,
    plain: bool = False,
) -> dict[str, Any]:
    """One row without its cells; `plain` is the reference, which has no change."""
    judged, trained = accuracy or {}, training or {}
    samples = judged.get("samples")
    on_gpu = trained.get("device") == "cuda"
    return {
        "model": model,
        "activation": named.get(model, model),
        "plain": plain,
        "top1": percentage(judged.get("top1"), samples),
        "change": None if plain else points(judged.get("delta"), samples),
        "interval": None if plain else points_interval(judged),
        "epoch_words": spread_words(trained.get("epoch_s")),
        "memory_bytes": trained.get("peak_device_bytes" if on_gpu else "peak_rss_bytes"),
    }


def cell_of(entry: Record, shape: Shape, variant: str) -> dict[str, Any]:
    """Times of one variant at one shape beside the reference's; `reason` where there are none."""
    own = [row for row in entry.get("latency") or () if row["variant"] == variant]
    row = next((one for one in own if shape_of(one) == shape), own[0] if own else {})
    speedup = row.get("speedup") or {}
    return {
        "speedup": speedup if is_positive(speedup.get("ratio")) else None,
        "noisy": bool(row.get("noisy")),
        "reason": row.get("reason") or "not measured",
    }


def figure_of(
    rows: Sequence[Record], shape: Shape, variants: Sequence[str], place: int, host: str | None
) -> dict[str, Any] | None:
    """The chart of one shape with its words; None where nothing was timed at it."""
    first = place * len(variants)
    marks = [
        mark_of(row, variant, cell["speedup"])
        for row in rows[1:]
        for variant, cell in zip(variants, row["cells"][first:], strict=False)
        if cell["speedup"]
    ]
    if not marks:
        return None
    title = titled(shape_label(shape), host)
    told = "; ".join(f"{one['activation']} {one['variant']} {one['speedup']}" for one in marks)
    description = f"Speed-ups over {rows[0]['activation']} at {title}: {told}."
    names = [{"model": row["model"], "name": row_name(row)} for row in rows[1:]]
    return {
        "title": title,
        "description": description,
        "chart": activation_chart(marks, names, list(variants), description=description),
    }


def row_name(row: Record) -> str:
    """ "relu, 33.4 % (+0.3)": the activation and, where it was judged, its accuracy and change."""
    parts = [f", {row['top1']} %" if row["top1"] else "", f" ({row['change']})"]
    return row["activation"] + parts[0] + (parts[1] if row["change"] else "")


def mark_of(row: Record, variant: str, speedup: Record) -> dict[str, Any]:
    """One mark of the chart."""
    known, value = parse(variant), speedup["ratio"]
    ends = {end: speedup.get(end) for end in ("low", "high")}
    return {
        "model": row["model"],
        "activation": row["activation"],
        "variant": variant,
        "engine": known.engine,
        "precision": known.precision,
        "ratio": value,
        **{end: own if is_positive(own) else value for end, own in ends.items()},
        "tie": speedup.get("verdict") == "tie",
        "speedup": ratio(speedup),
        "interval": ratio_interval(speedup),
        "verdict": speedup.get("verdict"),
    }
