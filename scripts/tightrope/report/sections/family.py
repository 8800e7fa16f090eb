"""Report section on families: a model and those that start from it, as a tree and as a chart."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from tightrope.report.charts import accuracy_latency_chart
from tightrope.report.sections.figures import change_of, describe_trade_off, join_title
from tightrope.report.style.numbers import TIMES, milliseconds, percent, plural, shape_label
from tightrope.report.style.palette import METHOD_COLOURS
from tightrope.statistics import Interval
from tightrope.summary.accuracy import FamilyAccuracy
from tightrope.summary.document import Summary
from tightrope.summary.families import Against, Family, FamilyEngine, FamilyShape
from tightrope.summary.models import FamilyMember
from tightrope.variants import parse

Record = Mapping[str, Any]
# columns of speed-ups by the role of the other engine
COLUMNS = {
    "parent_recommended": "its parent's best",
    "root_baseline": "the root's baseline",
    "root_recommended": "the root's best",
    "root_quantized": "the root's best int8",
}
# of a point, what its mark has too
MARKED = ("model", "variant", "recommended", "front", "raced")


def families_section(summary: Summary) -> list[dict[str, Any]]:
    """Return each family: its entry, `models` with their colours, a table in each of `shapes`."""
    colours, found = list(METHOD_COLOURS.values()), []
    for family in summary.families:
        # how many models are between each member and the root; a parent comes first
        depths: dict[str, int] = {}
        for member in family.members:
            depths[member.model] = depths.get(member.parent or "", -1) + 1
        budget = summary.accuracy_budget_points
        shapes = [table_of(family, shape, depths, budget) for shape in family.shapes]
        models = [(name, colours[at % len(colours)]) for at, name in enumerate(depths)]
        found.append({**asdict(family), "models": models, "shapes": shapes})
    return found


def table_of(
    family: Family, shape: FamilyShape, depths: Mapping[str, int], budget: float
) -> dict[str, Any]:
    """Return the table of a shape with its figure; rows are those of a tree.

    The root's baseline and its best quantized engine stand directly below the root. Only of a
    `nested` family parents differ from the root. `speedups` of a row are by the role of the other
    engine, `root` and `above` are changes of accuracy.
    """
    members = {member.model: member for member in family.members}
    engines = sorted(shape.engines, key=lambda one: list(members).index(one.model))
    rows: list[dict[str, Any]] = [
        {
            **asdict(engine),
            "depth": depths[engine.model],
            "changes": change_words(members[engine.model].changes),
            "parameters": parameter_words(members[engine.model].parameters),
            "speedups": {role: one.speedup for role, one in engine.against.items() if one.speedup},
            "root": accuracy_of(engine, "root_baseline"),
            "above": accuracy_of(engine, "parent_baseline"),
        }
        for engine in engines
    ]
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


def accuracy_of(engine: FamilyEngine, other: Against) -> FamilyAccuracy:
    """Return the change of accuracy from another engine, the reason where there is none."""
    found = engine.against.get(other)
    return (found and found.accuracy) or FamilyAccuracy(reason="not compared")


def change_words(changes: Record) -> list[str]:
    """Return a phrase per change: `3 layers`, `512 neurons per layer`, `activation relu`."""
    found = []
    for key, value in changes.items():
        match key:
            case "prune":
                found += prune_words(value)
            case "distill":
                found.append(f"distilled from {value.get('from')}")
            case "qat":  # the scheme whose values it was trained with, and whether with outputs too
                outputs = ", outputs too" if value.get("outputs") else ""
                found.append(f"trained for {value.get('scheme')}{outputs}")
            case "train":
                epochs, share = value.get("epochs"), value.get("sparsity")
                found.append(f"trained {plural(epochs, 'epoch')}" if epochs else "trained")
                found += [f"{percent(share)} of the weights zero"] if share else []
            case _:
                found.append(f"{key} {value}")
    return found


def prune_words(prune: Record) -> list[str]:
    """Return what pruning left, or what the sizes were chosen for."""
    found = []
    for key, value in prune.items():
        match key:
            case "blocks":
                found.append(f"{' + '.join(str(len(stage)) for stage in value)} blocks")
            case "layers":
                known = isinstance(value, list)
                found.append(f"layers {', '.join(map(str, value))}" if known else f"{value} layers")
            case "intermediate":
                part = "block of the first stage" if "blocks" in prune else "layer"
                found.append(f"{value} neurons per {part}")
            case "heads":
                found.append(f"{value} attention heads per layer")
            case "target":
                asked = value.get("asked") or {}
                most, faster = parameter_words(asked.get("parameters")), asked.get("speedup")
                limit = f"at most {most} parameters" if most else f"a speed-up of {faster}{TIMES}"
                found.append(f"chosen for {limit}")
            case _:
                found.append(f"prune {key} {value}")
    return found


def parameter_words(count: int | None) -> str | None:
    """Format a number of parameters in millions: `22.7 M`, below a million in full."""
    if count is None:
        return None
    return f"{count / 1e6:.1f} M" if count >= 1e6 else f"{count:,}"


def family_figure(
    title: str, shape: FamilyShape, members: Sequence[FamilyMember], budget: float
) -> dict[str, Any] | None:
    """Return the figure of a shape with chart and points, None without any."""
    marks: list[dict[str, Any]] = [
        {
            **{name: getattr(point, name) for name in MARKED},
            "precision": parse(point.variant).precision,
            "latency_ms": 1e3 * point.call_s,
            "latency_low": 1e3 * point.low,
            "latency_high": 1e3 * point.high,
            **change_of(Interval(point.delta, point.delta_low, point.delta_high)),
            "latency": f"{milliseconds(point.call_s)} ms",
        }
        for point in shape.points
    ]
    if not marks:
        return None
    # from each parent's recommended variant to its child's
    places = {mark["model"]: mark for mark in marks if mark["recommended"]}
    names = ("latency_ms", "delta")
    links = [
        {name: places[member.parent][name] for name in names}
        | {f"{name}_child": places[member.model][name] for name in names}
        for member in members
        if {member.parent, member.model} <= places.keys()
    ]
    chart = accuracy_latency_chart(
        marks,
        budget_points=budget,
        description=describe_trade_off(title, marks),
        models=[member.model for member in members],
        links=links,
    )
    return {"points": marks, "chart": chart}
