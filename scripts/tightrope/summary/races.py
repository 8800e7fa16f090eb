"""Race entries of summary.json."""

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any, Literal, NamedTuple

from tightrope.machine.host import host_key
from tightrope.records.race import RaceRecord
from tightrope.records.race_choice import race_choice, still_in
from tightrope.records.race_statistics import common_rounds, is_equal, ratio, winner
from tightrope.statistics import Interval
from tightrope.summary.decision_types import Race, RaceOutcome, RaceRatio
from tightrope.summary.noise import causes
from tightrope.summary.ratios import ratio_entry
from tightrope.summary.result_types import Ratio
from tightrope.summary.results import DISTURBED, shape_of

# a shape of a race record
Raced = dict[str, Any]
DECIDED: Literal["decided"] = "decided"


class RaceKey(NamedTuple):
    """Key of a race: model, host, device and shape."""

    model: str
    host: str | None
    device: str
    shape: tuple[tuple[str, int], ...]


def race_key(model: str, host: str | None, device: str, row: Mapping[str, Any]) -> RaceKey:
    """Return the key of the race that a latency row belongs to."""
    return RaceKey(model, host, device, tuple((name, row[name]) for name in shape_of(row)))


def race_entries(
    records: Iterable[RaceRecord], sizes: Mapping[tuple[str, str], int], *, accept_disturbed: bool
) -> dict[RaceKey, Race]:
    """Return an entry per race; `sizes` are file sizes in bytes by (model, variant)."""
    found: dict[RaceKey, Race] = {}
    for record in records:
        own = {variant: size for (model, variant), size in sizes.items() if model == record.model}
        places = range(len(record.heats[-1]["shapes"])) if record.heats else ()
        for place in places:
            heats = [heat["shapes"][place] for heat in record.heats]
            host = host_key(record.host)
            found[race_key(record.model, host, record.device, heats[0])] = {
                "model": record.model,
                "host": host,
                "device": record.device,
                "shape": shape_of(heats[0]),
                **outcome_of(record, heats, place, own, accept_disturbed),
            }
    return found


def outcome_of(
    record: RaceRecord,
    heats: list[Raced],
    place: int,
    sizes: Mapping[str, int],
    accept_disturbed: bool,
) -> RaceOutcome:
    """Summarize a race at one shape, see docs/summary-json.md."""
    within = record.decision["equal_within"]
    names = list(dict.fromkeys(name for heat in heats for name in heat["blocks_s"]))
    last = heats[-1]
    found = race_choice(record, place, sizes, accept_disturbed=accept_disturbed)
    still, first, close, chosen, provisional = found
    others = [one for one in still if one != chosen]
    equal = [one for one in close if chosen and is_equal(ratio(last, chosen, one), within)]
    equal = [one for one in equal if one != chosen]
    return {
        "status": (DECIDED if first else DISTURBED) if still else "failed",
        "variant": chosen,
        "fastest": first,
        "equal": sorted(equal),
        "open": [one for one in others if one not in equal],
        "within": within,
        "provisional": provisional,
        "reason": why_not(record, last, still) if still and not chosen else None,
        "raced": names,
        "left_out": {name: why for name, why in record.left_out.items() if name in names},
        "out": {name: one["by"] for heat in heats for name, one in heat["out"].items()},
        "rounds": sum(len(heat["loads"]) for heat in heats),
        "heats": len(heats),
        "stop": last["stop"],
        "ratios": ratios(heats, names, all_rounds=provisional),
    }


def is_undecided(record: RaceRecord) -> bool:
    """Return whether too few undisturbed rounds leave any shape of the race without a winner."""
    for shape in record.heats[-1]["shapes"] if record.heats else ():
        still = still_in(record, shape)
        if still and winner(shape, still) is None:
            return True
    return False


def why_not(record: RaceRecord, shape: Raced, still: list[str]) -> str:
    """Explain why a race has no winner."""
    kept = min(len(common_rounds(shape, still[0], one)) for one in still[1:])
    facts = [fact for name in still for fact in shape["facts"][name] if fact]
    words = causes(facts, shape["foreign_cores"], record.busiest)
    left = f"other load disturbed the race: {kept} of {len(shape['loads'])} rounds are left"
    return f"{left}; {words}" if words else left


def ratios(heats: Iterable[Raced], names: list[str], *, all_rounds: bool) -> list[RaceRatio]:
    """Return the speed-up of `variant` over `other` for all pairs with enough rounds."""
    found: dict[tuple[str, str], Ratio] = {}
    for heat in heats:
        here = [name for name in names if name in heat["blocks_s"]]
        for one, other in combinations(here, 2):
            measured = ratio(heat, one, other, all_rounds=all_rounds)
            if measured is not None:
                found[one, other] = ratio_entry(measured)
                found[other, one] = ratio_entry(turned(measured))
    return [{"variant": one, "other": other, **entry} for (one, other), entry in found.items()]


def turned(measured: Interval) -> Interval:
    """Return the inverse ratio with its interval."""
    return Interval(1 / measured.value, 1 / measured.high, 1 / measured.low)


def ratio_between(race: RaceOutcome, one: str, other: str) -> RaceRatio | None:
    """Return the speed-up of `one` over `other`, None if the race has no such ratio."""
    return next(
        (row for row in race["ratios"] if (row["variant"], row["other"]) == (one, other)), None
    )
