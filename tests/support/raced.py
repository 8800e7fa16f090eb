"""Races as records keep them, of engines whose times are planted."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from disturbed import BUSY, QUIET, WAITED
from msgspec import convert
from tightrope.decide.result import Shape
from tightrope.machine.host import fingerprint
from tightrope.records.race import Elimination, Heat, RacedShape, RaceRecord, beaten_by
from tightrope.records.record import RACE

HOST = {"cpu": "a", "isa": [], "cores": 2, "gpu": None, "driver": None}
PLACE = fingerprint(HOST)
SHAPE = Shape(batch=1, sequence=64)


def planted(
    seconds: Mapping[str, float], rounds: int = 24, *, spread: float = 0.005, seed: int = 0
) -> dict[str, list[float]]:
    """The time of a call in each round: about what was planted, in a machine that drifts."""
    draw = np.random.default_rng(seed)
    drift = draw.lognormal(0, 0.1, rounds)
    return {
        name: (one * drift * draw.lognormal(0, spread, rounds)).tolist()
        for name, one in seconds.items()
    }


def race_shape(
    times: Mapping[str, Iterable[float | None]],
    *,
    contenders: list[str] | None = None,
    pairs: Iterable[tuple[str, str]] = (),
    disturbed: int = 0,
    **changes: Any,
) -> RacedShape:
    """A shape of a race record: a call a round, half of the rounds with each load.

    In the first `disturbed` rounds another program had the processor.
    """
    known = {name: list(calls) for name, calls in times.items()}
    rounds = max(map(len, known.values()), default=0)
    pairs_of_blocks = [WAITED] * disturbed + [QUIET] * (rounds - disturbed)
    blocks, facts = {}, {}
    for name, calls in known.items():
        blocks[name] = [None if one is None else [one] for one in calls]
        both = zip(calls, pairs_of_blocks, strict=False)
        facts[name] = [None if one is None else pair for one, pair in both]
    measured = {
        "contenders": list(known) if contenders is None else contenders,
        **{"pairs": list(pairs), "blocks_s": blocks, "facts": facts},
        "loads": [0] * (rounds // 2) + [1] * (rounds - rounds // 2),
        **{"foreign_cores": BUSY, "stop": "one left", "seconds": 1.0},
    }
    return convert({**SHAPE.sizes, **measured, **changes}, RacedShape)


def decided_shape(seconds: Mapping[str, float], rounds: int = 24, **changes: Any) -> RacedShape:
    """The shape of a race of these, by their seconds a call, at its first look."""
    spread = {"spread": changes.pop("spread")} if "spread" in changes else {}
    shape = race_shape(planted(seconds, rounds, **spread), **changes)
    for loser, by in beaten_by(shape, list(seconds), 1).items():
        shape.out[loser] = Elimination(round=rounds, by=by)
    return shape


def race_record(*heats: list[RacedShape], **changes: Any) -> RaceRecord:
    """The record of a race on the CPU of model m; a heat is a list of its shapes."""
    known = {
        **{"model": "m", "variant": RACE, "device": "cpu", "host": HOST, "libraries": {}},
        **{"plan": {"pairs": 12, "loads": 1}, "decision": {"seconds": 60, "equal_within": 0.02}},
        **{"threads": 1, "processors": [0], "engines_sha256": {}},
        "heats": [Heat(shapes=heat) for heat in heats],
    }
    return RaceRecord(**{**known, **changes})
