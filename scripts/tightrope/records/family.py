"""Record of a family: models and those that start from them, timed in the same rounds."""

from collections.abc import Sequence

from msgspec import Struct

from tightrope.records.race import RaceRecord

# `variant` of these records
FAMILY = "family"


class Roles(Struct, kw_only=True, forbid_unknown_fields=True):
    """The engines at a shape: the one of each model that its race chose, and the root's two others.

    `baseline` is the root's, `quantized` its best quantized engine, each None where it was not
    measured.
    """

    chosen: dict[str, str] = {}
    baseline: str | None = None
    quantized: str | None = None


class FamilyRecord(RaceRecord, kw_only=True):
    """Times of the engines of several models on one device, measured in the same rounds.

    `model` is the root, from which all others start, directly or through another one. Engines are
    named `model/variant`. `roles` are by shape; the `pairs` of a shape are the engines whose ratios
    are measured until they are known to `decision.equal_within`, and nobody is eliminated.
    `unraced` maps a model without an engine to the reason.
    """

    roles: Sequence[Roles] = ()
    unraced: dict[str, str] = {}


def engine_name(model: str, variant: str) -> str:
    """Return the name of an engine in a FamilyRecord."""
    return f"{model}/{variant}"


def model_and_variant(name: str) -> tuple[str, str]:
    """Return model and variant of an engine by its name."""
    model, _, variant = name.partition("/")
    return model, variant
