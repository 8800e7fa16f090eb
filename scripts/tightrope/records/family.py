"""Record of a family: models and those that start from them, timed in the same rounds."""

from collections.abc import Iterable, Sequence

from tightrope.records.race import Heat, RacedShape, RaceRecord, common_rounds, ratio
from tightrope.statistics import Interval

# `variant` of these records
FAMILY = "family"


class FamilyShape(RacedShape, kw_only=True):
    """The rounds of a heat at one shape; nobody is eliminated.

    `chosen` has the engine of each model that its race chose, `baseline` is the root's baseline and
    `quantized` its best quantized engine, each None where it was not measured. `pairs` are the
    engines whose ratios are measured until they are known to `decision.equal_within`.
    """

    chosen: dict[str, str] = {}
    baseline: str | None = None
    quantized: str | None = None


class FamilyHeat(Heat, kw_only=True):
    """The shapes of engines that fit in memory together."""

    shapes: Sequence[FamilyShape] = ()


class FamilyRecord(RaceRecord, kw_only=True):
    """Times of the engines of several models on one device, measured in the same rounds.

    `model` is the root, from which all others start, directly or through another one. Engines are
    named `model/variant`. `unraced` maps a model without an engine to the reason.
    """

    heats: Sequence[FamilyHeat] = ()
    unraced: dict[str, str] = {}


def engine_name(model: str, variant: str) -> str:
    """Return the name of an engine in a FamilyRecord."""
    return f"{model}/{variant}"


def model_and_variant(name: str) -> tuple[str, str]:
    """Return model and variant of an engine by its name."""
    model, _, variant = name.partition("/")
    return model, variant


def measured_ratio(
    heats: Iterable[RacedShape], one: str, other: str, *, all_rounds: bool = False
) -> Interval | None:
    """Return the speed-up of `one` over `other` at a shape, from the rounds of both.

    `heats` has that shape of each heat. None where they did not run in the same rounds, or where
    other load disturbed too many of these; with `all_rounds` disturbed ones count too.
    """
    for shape in heats:
        if {one, other} <= shape.blocks_s.keys():
            return ratio(shape, one, other, all_rounds=all_rounds)
    return None


def has_rounds(heats: Iterable[RacedShape], one: str, other: str) -> bool:
    """Return whether both ran in the same rounds, disturbed or not."""
    return any(
        {one, other} <= shape.blocks_s.keys()
        and bool(common_rounds(shape, one, other, all_rounds=True))
        for shape in heats
    )


def is_disturbed(record: FamilyRecord) -> bool:
    """Return whether other load left too few rounds for the ratio of a pair."""
    for heat in record.heats:
        for shape in heat.shapes:
            for one, other in shape.pairs:
                if has_rounds([shape], one, other) and not measured_ratio([shape], one, other):
                    return True
    return False
