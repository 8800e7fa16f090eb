"""Record of a family: models and those that start from them, timed in the same rounds."""

from collections.abc import Iterable
from typing import Any, ClassVar, TypedDict

from tightrope.records.race import RacedShape, RaceRecord, common_rounds, ratio
from tightrope.statistics import Interval

# `variant` of these records
FAMILY = "family"


class FamilyShape(RacedShape, total=False):
    """An entry of `shapes` of a heat, see `FamilyRecord`."""

    chosen: dict[str, str]
    baseline: str | None
    quantized: str | None


class FamilyHeat(TypedDict, total=False):
    """An entry of `heats` of a FamilyRecord: engines that fit in memory together."""

    shapes: list[FamilyShape]


class FamilyRecord(RaceRecord, kw_only=True):
    """Times of the engines of several models on one device, measured in the same rounds.

    `model` is the root, from which all others start, directly or through another one. Engines are
    named `model/variant`. At each shape `chosen` has the engine of each model that its race chose,
    `baseline` is the root's baseline and `quantized` its best quantized engine, each None where it
    was not measured. Nobody is eliminated: `pairs` are the engines whose ratios are measured until
    they are known to `decision.equal_within`. `unraced` maps a model without an engine to the
    reason.
    """

    CONTENTS: ClassVar[dict[str, Any]] = {"heats": list[FamilyHeat]}

    unraced: dict[str, str] = {}


def engine_name(model: str, variant: str) -> str:
    """Return the name of an engine in a FamilyRecord."""
    return f"{model}/{variant}"


def model_and_variant(name: str) -> tuple[str, str]:
    """Return model and variant of an engine by its name."""
    model, _, variant = name.partition("/")
    return model, variant


def shapes_at(record: FamilyRecord, place: int) -> list[dict[str, Any]]:
    """Return the shape with index `place` of each heat."""
    return [heat["shapes"][place] for heat in record.heats]


def measured_ratio(
    heats: Iterable[dict[str, Any]], one: str, other: str, *, all_rounds: bool = False
) -> Interval | None:
    """Return the speed-up of `one` over `other` at a shape, from the rounds of both.

    `heats` are those of `shapes_at`. None where they did not run in the same rounds, or where other
    load disturbed too many of these; with `all_rounds` disturbed ones count too.
    """
    for shape in heats:
        if {one, other} <= set(shape["blocks_s"]):
            return ratio(shape, one, other, all_rounds=all_rounds)
    return None


def has_rounds(heats: Iterable[dict[str, Any]], one: str, other: str) -> bool:
    """Return whether both ran in the same rounds, disturbed or not."""
    return any(
        {one, other} <= set(shape["blocks_s"])
        and bool(common_rounds(shape, one, other, all_rounds=True))
        for shape in heats
    )


def is_disturbed(record: FamilyRecord) -> bool:
    """Return whether other load left too few rounds for the ratio of a pair."""
    for heat in record.heats:
        for shape in heat["shapes"]:
            for one, other in shape["pairs"]:
                if has_rounds([shape], one, other) and not measured_ratio([shape], one, other):
                    return True
    return False
