"""Old and new engine of a variant, timed side by side on this machine."""

import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TextIO

import psutil
from msgspec.structs import replace

from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.artifacts.provenance import library_versions
from tightrope.compare.read import Key, Report, RowKey
from tightrope.errors import TightropeError, WorkFailed, in_one_line
from tightrope.inputs.encode import timing_batches
from tightrope.jobs.child import Limits
from tightrope.machine.cores import pinned_processors
from tightrope.machine.interference import QuietMachine
from tightrope.measure.rounds import rounds_of
from tightrope.measure.timed_engine import timed_engine
from tightrope.records.record import FEWEST_ROUNDS, Round, blocks_of, undisturbed_rounds
from tightrope.statistics import Interval, speedup

# for both engines of a variant, at all shapes
SECONDS = 900.0
# that may be lost to other load, for each variant
QUIET_SECONDS = 60.0
LOADS = 2
# an engine, its checkpoint, the examples that fill a batch, and with how many threads it runs
Side = tuple[Path, Path, Path, int]


def remeasure(
    old: Report, new: Report, rows: Iterable[RowKey], terminal: TextIO = sys.stderr
) -> dict[RowKey, Interval | str]:
    """Return the time of the new engine over that of the old one, or why there is none, by row.

    Both are loaded twice, in turned order, and timed in the same rounds, as the models of a family
    are. The interval is of 95 %; it needs no baseline.
    """
    by_key: dict[Key, list[RowKey]] = defaultdict(list)
    for row in rows:
        by_key[row.key].append(row)
    found: dict[RowKey, Interval | str] = {}
    for key, own in by_key.items():
        try:
            sides = side_of(old, key), side_of(new, key)
            times = times_of(sides, f"timing {key.variant}", own, terminal)
            found |= dict(zip(own, times, strict=True))
        except TightropeError as error:
            found |= dict.fromkeys(own, in_one_line(error))
        except WorkFailed as error:
            found |= dict.fromkeys(own, error.reason)
    return found


def side_of(report: Report, key: Key) -> Side:
    """Return the engine of a result.

    Raises TightropeError unless it is still there as measured, and was built with the libraries
    that are installed: one process has one of each.
    """
    result = report.results[key]
    model = report.path.absolute().parents[1] / "artifacts" / key.model
    engine = model / "engines" / report.stored_as.get(key, key.variant) / "engine.json"
    if not engine.is_file():
        raise TightropeError(f"{engine}: the engine is not there any more")
    if sha256(engine) != result.engine_sha256:
        raise TightropeError(f"{engine}: another engine than the one that was measured")
    if not result.threads:
        raise TightropeError(f"{'/'.join(key)}: its report does not say with how many threads")
    built = read_manifest(engine, EngineManifest)["libraries"]
    for name, here in library_versions(*built).items():
        if built[name] != here:
            built_with = f"{engine}: built with {name} {built[name]}"
            raise TightropeError(f"{built_with}, here is {here}: one process has one")
    checkpoint, data = model / "checkpoint/checkpoint.json", model / "splits/timing.json"
    return engine, checkpoint, data, result.threads


def times_of(
    sides: tuple[Side, Side], title: str, rows: Sequence[RowKey], terminal: TextIO
) -> list[Interval | str]:
    """Return the ratio of each row of a variant, or that other load left too little.

    Raises TightropeError and WorkFailed.
    """
    shapes = [row.shape.sizes for row in rows]
    longest = max(shape.get("sequence", 1) for shape in shapes)
    _, checkpoint, data, threads = sides[1]
    batches = timing_batches(checkpoint, data, shapes, max_sequence=longest)
    machine = QuietMachine(pinned_processors(threads), QUIET_SECONDS, terminal)
    limits = Limits(memory_bytes=float(psutil.virtual_memory().total), seconds=SECONDS)
    engines = [timed_engine(*side[:2], batches, threads=side[3]) for side in sides]
    rounds: list[list[Round]] = [[] for _ in rows]
    for turn in (1, -1)[:LOADS]:
        found = rounds_of(engines[::turn], limits, machine, title, range(len(batches)))
        for own, measured in zip(rounds, found, strict=True):
            own += [replace(one, blocks_s=one.blocks_s[::turn]) for one in measured]
    times: list[Interval | str] = []
    for own in rounds:
        kept = undisturbed_rounds(own)
        if len(kept) < FEWEST_ROUNDS:
            times.append(f"disturbed by other load: {len(kept)} of {len(own)} rounds count")
        else:
            times.append(speedup(blocks_of(kept, 0), blocks_of(kept, 1), loads=LOADS))
    return times
