"""From the record of a race to `races` of the summary."""

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any, NamedTuple

from tightrope.machine.host import fingerprint
from tightrope.records.race import RaceRecord
from tightrope.records.race_statistics import common_rounds, is_equal, leader, ratio, winner
from tightrope.statistics import Interval
from tightrope.summary.noise import CAUSES, named
from tightrope.summary.results import DISTURBED, ratio_entry

Entry = dict[str, Any]
SHAPE_KEYS = ("batch", "sequence", "height", "width")
DECIDED, FAILED = "decided", "failed"


class RaceKey(NamedTuple):
    """Which race: of a model on a device of a host at a shape."""

    model: str
    host: str
    device: str
    shape: tuple[tuple[str, int], ...]


def shape_of(row: Mapping[str, Any]) -> Entry:
    """The keys of a shape or of a row that say which shape it is."""
    return {key: row[key] for key in SHAPE_KEYS if key in row}


def race_key(model: str, host: str, device: str, row: Mapping[str, Any]) -> RaceKey:
    """The key of the race in which a row of latency takes part."""
    return RaceKey(model, host, device, tuple(shape_of(row).items()))


def race_entries(
    records: Iterable[RaceRecord], sizes: Mapping[tuple[str, str], int], *, accept_disturbed: bool
) -> dict[RaceKey, Entry]:
    """One entry for each race; `sizes` are the bytes of each (model, variant)."""
    found = {}
    for record in records:
        own = {variant: size for (model, variant), size in sizes.items() if model == record.model}
        places = range(len(record.heats[-1]["shapes"])) if record.heats else ()
        for place in places:
            heats = [heat["shapes"][place] for heat in record.heats]
            key = race_key(record.model, fingerprint(record.host), record.device, heats[0])
            found[key] = {
                **key._asdict(),
                "shape": dict(key.shape),
                **entry_of(record, heats, own, accept_disturbed),
            }
    return found


def entry_of(
    record: RaceRecord, heats: list[Entry], sizes: Mapping[str, int], accept_disturbed: bool
) -> Entry:
    """What one race at one shape says, see docs/summary-json.md."""
    within = record.decision["equal_within"]
    names = list(dict.fromkeys(name for heat in heats for name in heat["blocks_s"]))
    last = heats[-1]
    still = still_in(record, last)
    status, provisional = DECIDED, False
    first = winner(last, still) if still else None
    if still and first is None:
        status = DISTURBED
        if accept_disturbed:
            first, provisional = leader(last, still, all_rounds=True), True
            status = DECIDED if first else DISTURBED
    equal = [
        one for one in still if one != first and first and is_equal(ratio(last, first, one), within)
    ]
    chosen = min([first, *equal], key=lambda one: (sizes[one], one != first)) if first else None
    return {
        "status": status if still else FAILED,
        "variant": chosen,
        "fastest": first,
        "equal": sorted({first, *equal} - {chosen}) if chosen else [],
        "open": [one for one in still if one not in {first, *equal}] if chosen else still,
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
    """Whether a shape of that race has no winner, because too few rounds were undisturbed."""
    for shape in record.heats[-1]["shapes"] if record.heats else ():
        still = still_in(record, shape)
        if still and winner(shape, still) is None:
            return True
    return False


def still_in(record: RaceRecord, shape: Entry) -> list[str]:
    """The contenders of the last heat that nobody beat."""
    gone = set(shape["out"]) | set(record.left_out)
    return [name for name in shape["contenders"] if name not in gone]


def why_not(record: RaceRecord, shape: Entry, still: list[str]) -> str:
    """Why a race has no winner."""
    kept = min(len(common_rounds(shape, still[0], one)) for one in still[1:])
    return (
        f"other load disturbed the race: {kept} of {len(shape['loads'])} rounds are left; "
        f"{CAUSES['waited']}{named(record.loudest)}"
    )


def ratios(heats: Iterable[Entry], names: list[str], *, all_rounds: bool) -> list[Entry]:
    """How many times as fast `variant` is as `other`, for any two that had enough rounds."""
    found: dict[tuple[str, str], Entry] = {}
    for heat in heats:
        here = [name for name in names if name in heat["blocks_s"]]
        for one, other in combinations(here, 2):
            measured = ratio(heat, one, other, all_rounds=all_rounds)
            if measured is not None:
                found[one, other] = ratio_entry(measured)
                found[other, one] = ratio_entry(turned(measured))
    return [{"variant": one, "other": other, **entry} for (one, other), entry in found.items()]


def turned(measured: Interval) -> Interval:
    """The ratio seen from the other side."""
    return Interval(1 / measured.value, 1 / measured.high, 1 / measured.low)


def ratio_between(race: Entry, one: str, other: str) -> Entry | None:
    """How many times as fast `one` is as `other`; None where the race does not tell."""
    return next(
        (row for row in race["ratios"] if (row["variant"], row["other"]) == (one, other)), None
    )
