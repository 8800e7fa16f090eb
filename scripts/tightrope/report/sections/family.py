"""Report section on families: a model and those that start from it, as a tree and as a chart."""

from collections.abc import Mapping, Sequence
from typing import Any

from tightrope.report.sections.family_figure import family_figure
from tightrope.report.sections.family_words import change_words, parameter_words
from tightrope.report.sections.figures import join_title
from tightrope.report.style.numbers import (
    percentage,
    points,
    points_interval,
    shape_label,
    shape_of,
)
from tightrope.report.style.palette import METHOD_COLOURS

Record = Mapping[str, Any]
# columns of speed-ups by the role of the other engine
COLUMNS = {
    "parent_recommended": "its parent's best",
    "root_baseline": "the root's baseline",
    "root_recommended": "the root's best",
    "root_quantized": "the root's best int8",
}


def families_section(summary: Record, hosts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the content on each family; `hosts` are names by fingerprint, empty for one host."""
    budget = summary.get("accuracy_budget_points")
    return [content_of(family, hosts, budget) for family in summary.get("families") or ()]


def content_of(family: Record, hosts: Mapping[str, str], budget: float | None) -> dict[str, Any]:
    """Return the content on one family.

    It has `root`, `device`, `host`, `reason` (of a failed one), `models` with their colours, a
    table in each of `shapes`, and all `figures`.
    """
    members = family.get("members") or []
    depths = depths_of(members)
    shapes = [table_of(family, shape, depths, budget) for shape in family.get("shapes") or ()]
    colours = list(METHOD_COLOURS.values())
    models = [member["model"] for member in members]
    return {
        "root": family.get("root"),
        "device": family.get("device"),
        "host": hosts.get(str(family.get("host"))),
        "reason": family.get("reason"),
        "models": [(name, colours[at % len(colours)]) for at, name in enumerate(models)],
        "unraced": [one for one in members if one.get("reason")],
        "shapes": shapes,
        "figures": [shape["figure"] for shape in shapes if shape["figure"]],
    }


def depths_of(members: Sequence[Record]) -> dict[str, int]:
    """Return how many models are between each member and the root; a parent comes first."""
    found: dict[str, int] = {}
    for member in members:
        found[member["model"]] = found.get(member.get("parent") or "", -1) + 1
    return found


def table_of(
    family: Record, shape: Record, depths: Mapping[str, int], budget: float | None
) -> dict[str, Any]:
    """Return the table of a shape with its figure; rows are those of a tree.

    The root's baseline and its best quantized engine stand directly below the root. Only of a
    `nested` family parents differ from the root.
    """
    members = {member["model"]: member for member in family["members"]}
    engines = sorted(shape["engines"], key=lambda one: list(members).index(one["model"]))
    rows = [row_of(engine, members[engine["model"]], depths) for engine in engines]
    nested = max(depths.values(), default=0) > 1
    columns = {
        role: title
        for role, title in COLUMNS.items()
        if any(role in row["speedups"] for row in rows) and (nested or role != "parent_recommended")
    }
    if all(one_best(row["speedups"]) for row in rows):
        columns.pop("root_quantized", None)
    title = join_title(shape_label(shape_of(shape["shape"])), family.get("device"))
    return {
        "title": title,
        "rows": rows,
        "columns": columns,
        "energy": any(row["energy_j"] is not None for row in rows),
        "nested": nested,
        "disturbed": shape.get("disturbed"),
        "provisional": shape.get("provisional"),
        "fastest": shape.get("fastest"),
        "rounds": shape.get("rounds"),
        "figure": family_figure(title, shape, family["members"], budget),
    }


def one_best(speedups: Record) -> bool:
    """Return whether the root's best engine is its best int8, so that one column is enough."""
    pair = [speedups.get(role) for role in ("root_recommended", "root_quantized")]
    return pair[0] == pair[1]


def row_of(engine: Record, member: Record, depths: Mapping[str, int]) -> dict[str, Any]:
    """Return a row of the table; `speedups` are by the role of the other engine."""
    against, samples = engine.get("against") or {}, engine.get("samples")
    return {
        **{name: engine.get(name) for name in ("model", "variant", "role", "reason", "verdict")},
        **{name: engine.get(name) for name in ("size_bytes", "energy_j", "call_s", "front")},
        "depth": depths[engine["model"]],
        "parent": member.get("parent"),
        "changes": change_words(member.get("changes") or {}),
        "parameters": parameter_words(member.get("parameters")),
        "top1": percentage(engine.get("top1"), samples),
        "speedups": {role: one["speedup"] for role, one in against.items() if one.get("speedup")},
        "root": accuracy_of(against.get("root_baseline"), samples),
        "above": accuracy_of(against.get("parent_baseline"), samples),
    }


def accuracy_of(comparison: Record | None, samples: int | None) -> dict[str, Any]:
    """Return a change of accuracy in words, with the `reason` where there is none."""
    accuracy: Record = (comparison or {}).get("accuracy") or {}
    counted = {**accuracy, "samples": samples}
    return {
        "change": points(accuracy.get("delta"), samples),
        "interval": points_interval(counted),
        "verdict": accuracy.get("verdict"),
        "flips": accuracy.get("flips"),
        "p_value": accuracy.get("p_value"),
        "reason": accuracy.get("reason") or "not compared",
    }
