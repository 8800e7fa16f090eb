"""Report section on families: a model and those that start from it, as a tree and as a chart."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from tightrope.records.accuracy import Change
from tightrope.report.charts import PRECISION, Part, chart, labels, layer, palette, tooltips
from tightrope.report.sections.figures import (
    accuracy_over_latency,
    change_of,
    compression,
    describe_trade_off,
    join_title,
    ring,
)
from tightrope.report.style.numbers import TIMES, milliseconds, shape_label
from tightrope.report.style.palette import METHOD_COLOURS
from tightrope.statistics import Interval
from tightrope.summary.accuracy import FamilyAccuracy
from tightrope.summary.document import Summary
from tightrope.summary.families import Comparison, Family, FamilyEngine, FamilyPoint, FamilyShape
from tightrope.summary.models import FamilyMember
from tightrope.variants import parse

Record = Mapping[str, Any]
NO_CHANGE = dict.fromkeys(Change.__struct_fields__)
# columns of speed-ups by the role of the other engine
COLUMNS = {
    "parent_recommended": "its parent's best",
    "root_baseline": "the root's baseline",
    "root_recommended": "the root's best",
    "root_quantized": "the root's best int8",
}
# of a point, what its mark has too
MARKED = ("model", "variant", "recommended", "front", "raced")
SMALL, LARGE = 55, 130  # area of a mark, of a recommended variant the larger one


def families_section(summary: Summary, hosts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the content on each family; `hosts` are names by fingerprint, empty for one host."""
    budget = summary.accuracy_budget_points
    return [content_of(family, hosts, budget) for family in summary.families]


def content_of(family: Family, hosts: Mapping[str, str], budget: float) -> dict[str, Any]:
    """Return the content on one family.

    It is its entry, with the name of the `host`, `models` with their colours, a table in each of
    `shapes`, and all `figures`.
    """
    depths = depths_of(family.members)
    shapes = [table_of(family, shape, depths, budget) for shape in family.shapes]
    colours = list(METHOD_COLOURS.values())
    return {
        **asdict(family),
        "host": hosts.get(family.host),
        "models": [(name, colours[at % len(colours)]) for at, name in enumerate(depths)],
        "shapes": shapes,
        "figures": [one["figure"] for one in shapes if one["figure"]],
    }


def depths_of(members: Sequence[FamilyMember]) -> dict[str, int]:
    """Return how many models are between each member and the root; a parent comes first."""
    found: dict[str, int] = {}
    for member in members:
        found[member.model] = found.get(member.parent or "", -1) + 1
    return found


def table_of(
    family: Family, shape: FamilyShape, depths: Mapping[str, int], budget: float
) -> dict[str, Any]:
    """Return the table of a shape with its figure; rows are those of a tree.

    The root's baseline and its best quantized engine stand directly below the root. Only of a
    `nested` family parents differ from the root.
    """
    members = {member.model: member for member in family.members}
    engines = sorted(shape.engines, key=lambda one: list(members).index(one.model))
    rows = [row_of(engine, members[engine.model], depths) for engine in engines]
    nested = max(depths.values(), default=0) > 1
    columns = {
        role: title
        for role, title in COLUMNS.items()
        if any(role in row["speedups"] for row in rows) and (nested or role != "parent_recommended")
    }
    # the root's best engine is its best int8, so that one column is enough
    best = ("root_recommended", "root_quantized")
    if all(row["speedups"].get(best[0]) == row["speedups"].get(best[1]) for row in rows):
        columns.pop("root_quantized", None)
    title = join_title(shape_label(shape.shape), family.device)
    return {
        **asdict(shape),
        "title": title,
        "rows": rows,
        "columns": columns,
        "energy": any(row["energy_j"] is not None for row in rows),
        "nested": nested,
        "figure": family_figure(title, shape, family.members, budget),
    }


def row_of(engine: FamilyEngine, member: FamilyMember, depths: Mapping[str, int]) -> dict[str, Any]:
    """Return a row of the table; `speedups` are by the role of the other engine."""
    against, samples = engine.against, engine.samples
    return {
        **asdict(engine),
        "depth": depths[engine.model],
        "changes": change_words(member.changes),
        "parameters": parameter_words(member.parameters),
        "speedups": {role: one.speedup for role, one in against.items() if one.speedup},
        "root": accuracy_of(against.get("root_baseline"), samples),
        "above": accuracy_of(against.get("parent_baseline"), samples),
    }


def accuracy_of(comparison: Comparison | None, samples: int | None) -> dict[str, Any]:
    """Return a change of accuracy over so many samples, with the `reason` where there is none."""
    found = (comparison and comparison.accuracy) or FamilyAccuracy(reason="not compared")
    change, told = found.change, {"flips": found.flips, "reason": found.reason}
    return {**(asdict(change) if change else NO_CHANGE), **told, "samples": samples}


def change_words(changes: Record) -> list[str]:
    """Return a phrase per change: `3 layers`, `512 neurons per layer`, `activation relu`."""
    known = {
        "prune": prune_words,
        "distill": lambda made: [f"distilled from {made.get('from')}"],
        "qat": qat_words,
        "train": train_words,
    }
    found = []
    for key, value in changes.items():
        found += known[key](value) if key in known else [other_words(key, value)]
    return found


def prune_words(prune: Record) -> list[str]:
    """Return what pruning left."""
    found = []
    for key, value in prune.items():
        match key:
            case "blocks":
                found.append(f"{' + '.join(str(len(stage)) for stage in value)} blocks")
            case "intermediate" if "blocks" in prune:
                found.append(f"{value} neurons per block of the first stage")
            case "layers":
                whole = isinstance(value, int)
                found.append(f"{value} layers" if whole else f"layers {listed(value)}")
            case "intermediate":
                found.append(f"{value} neurons per layer")
            case "heads":
                found.append(f"{value} attention heads per layer")
            case "target":
                found.append(target_words(value.get("asked") or {}))
            case _:
                found.append(f"prune {other_words(key, value)}")
    return found


def target_words(asked: Record) -> str:
    """Return what the sizes were chosen for: a speed-up or a number of parameters."""
    if "parameters" in asked:
        return f"chosen for at most {parameter_words(asked['parameters'])} parameters"
    return f"chosen for a speed-up of {asked.get('speedup')}{TIMES}"


def qat_words(qat: Record) -> list[str]:
    """Return the scheme whose values a model was trained with, and whether with outputs too."""
    return [f"trained for {qat.get('scheme')}" + (", outputs too" if qat.get("outputs") else "")]


def train_words(recipe: Record) -> list[str]:
    """Return how long a model was trained, and the share of its weights that this made zero."""
    epochs, share = recipe.get("epochs"), recipe.get("sparsity")
    long = f"trained {epochs} {'epoch' if epochs == 1 else 'epochs'}" if epochs else "trained"
    return [long, f"{100 * share:.0f} % of the weights zero"] if share else [long]


def other_words(key: str, value: Any) -> str:
    """Return a change of another kind, its values by name."""
    if isinstance(value, Mapping):
        inside = ", ".join(f"{name} {listed(one)}" for name, one in value.items())
        return f"{key}: {inside}"
    return key if value is True else f"{key} {listed(value)}"


def listed(value: Any) -> str:
    """Format a value, several of them with commas."""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def parameter_words(count: int | None) -> str | None:
    """Format a number of parameters in millions: `22.7 M`, below a million in full."""
    if count is None:
        return None
    return f"{count / 1e6:.1f} M" if count >= 1e6 else f"{count:,}"


def family_figure(
    title: str, shape: FamilyShape, members: Sequence[FamilyMember], budget: float
) -> dict[str, Any] | None:
    """Return the figure of a shape with title, description, chart and points, None without any."""
    marks = [mark_of(point) for point in shape.points]
    if not marks:
        return None
    models = [member.model for member in members]
    description = describe_trade_off(title, marks)
    links = links_of(marks, members)
    chart = family_chart(marks, links, models, budget_points=budget, description=description)
    return {"description": description, "points": marks, "chart": chart}


def mark_of(point: FamilyPoint) -> dict[str, Any]:
    """Return a mark of the chart."""
    return {
        **{name: getattr(point, name) for name in MARKED},
        "precision": parse(point.variant).precision,
        "latency_ms": 1e3 * point.call_s,
        "latency_low": 1e3 * point.low,
        "latency_high": 1e3 * point.high,
        **change_of(Interval(point.delta, point.delta_low, point.delta_high)),
        "latency": f"{milliseconds(point.call_s)} ms",
    }


def links_of(marks: Sequence[Record], members: Sequence[FamilyMember]) -> list[dict[str, Any]]:
    """Return the ends of a line from each parent's recommended variant to its child's."""
    places = {mark["model"]: mark for mark in marks if mark["recommended"]}
    names = ("latency_ms", "delta")
    return [
        {name: places[member.parent][name] for name in names}
        | {f"{name}_child": places[member.model][name] for name in names}
        for member in members
        if {member.parent, member.model} <= places.keys()
    ]


def family_chart(
    points: Sequence[dict[str, Any]],
    links: Sequence[dict[str, Any]],
    models: Sequence[str],
    *,
    budget_points: float,
    description: str,
) -> dict[str, Any]:
    """Chart accuracy change (points) against latency (ms, logarithmic).

    A point has model, variant, precision, recommended (bool), the tooltip texts latency and change,
    and what `accuracy_over_latency` draws. A link has the latency_ms and delta of a parent's
    recommended variant, and those of its child's with the suffix `_child`. Colour is the model, in
    the order of `models`.
    """
    colour, recommended = palette("model", models, "ordinal"), "datum.recommended"
    position, lines, intervals = accuracy_over_latency(points, budget_points, colour, recommended)
    tooltip = tooltips("variant", "latency", "change")
    drawn = {**position, "color": colour, "shape": PRECISION}
    drawn["tooltip"] = [{"field": "model", "type": "nominal"}, *tooltip]
    small = {"filled": True, "size": SMALL, "opacity": 0.6}
    large = {"filled": True, "size": LARGE, "opacity": 1}
    name = {"align": "left", "dx": 12, "dy": -13}
    layers = [
        *lines,
        *link_layers(links, position),
        *intervals,
        layer("point", small, where="!datum.recommended", **drawn),
        ring(recommended, position),
        layer("point", large, where=recommended, **drawn),
        *labels("model", name, where=recommended, **position),
    ]
    title = f"accuracy change from the root's baseline, points{compression(position)}"
    return chart(layers, points, description, title=title, height=300)


def link_layers(links: Sequence[dict[str, Any]], position: Part) -> list[Part]:
    """Return the lines from parents to children, none without links."""
    ends = {"x2": {"field": "latency_ms_child"}, "y2": {"field": "delta_child"}}
    return [layer("rule", {"style": "edge"}, rows=links, **position, **ends)] if links else []
