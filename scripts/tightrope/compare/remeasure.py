"""Old and new engine of a variant, timed side by side on this machine."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import psutil

from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.artifacts.provenance import library_versions
from tightrope.compare.read import Key, Report, RowKey
from tightrope.errors import TightropeError, WorkFailed, in_one_line
from tightrope.inputs.timing_batches import timing_batches
from tightrope.jobs.child import Limits
from tightrope.machine.cores import pinned_processors
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.rounds import rounds_of
from tightrope.measure.timed_engine import timed_engine
from tightrope.records.record import FEWEST_ROUNDS, blocks_of, undisturbed_rounds
from tightrope.statistics import Interval, speedup

# for both engines of a variant, at all shapes
SECONDS = 900.0
# that may be lost to other load, for each variant
QUIET_SECONDS = 60.0
LOADS = 2


class Side(NamedTuple):
    """An engine of one of the reports with its checkpoint and the examples that fill a batch."""

    engine: Path
    checkpoint: Path
    data: Path
    threads: int


def remeasure(
    old: Report, new: Report, rows: Iterable[RowKey], terminal: TextIO = sys.stderr
) -> dict[RowKey, Interval | str]:
    """Return the time of the new engine over that of the old one, or why there is none, by row.

    Both are loaded twice, in turned order, and timed in the same rounds, as the models of a family
    are. The interval is of 95 %; it needs no baseline.
    """
    by_key: dict[Key, list[RowKey]] = {}
    for row in rows:
        by_key.setdefault(row.key, []).append(row)
    found: dict[RowKey, Interval | str] = {}
    for key, own in by_key.items():
        try:
            found |= dict(zip(own, times_of(old, new, key, own, terminal), strict=True))
        except (TightropeError, WorkFailed) as error:
            reason = error.reason if isinstance(error, WorkFailed) else in_one_line(error)
            found |= dict.fromkeys(own, reason)
    return found


def times_of(
    old: Report, new: Report, key: Key, rows: Sequence[RowKey], terminal: TextIO
) -> list[Interval | str]:
    """Return the ratio of each row of a variant; raises TightropeError and WorkFailed."""
    sides = side_of(old, key), side_of(new, key)
    shapes = [dict(row.shape) for row in rows]
    longest = max(shape.get("sequence", 1) for shape in shapes)
    batches = timing_batches(sides[1].checkpoint, sides[1].data, shapes, max_sequence=longest)
    machine = QuietMachine(pinned_processors(sides[1].threads), QUIET_SECONDS, terminal)
    limits = Limits(memory_bytes=float(psutil.virtual_memory().total), seconds=SECONDS)
    title, indices = f"timing {key.variant}", range(len(batches))
    engines = [
        timed_engine(one.engine, one.checkpoint, batches, threads=one.threads) for one in sides
    ]
    rounds: list[list[dict[str, Any]]] = [[] for _ in rows]
    for turn in (1, -1)[:LOADS]:
        found = rounds_of(engines[::turn], limits, machine, title, indices)
        for place, measured in enumerate(found):
            rounds[place] += [{**one, "blocks_s": one["blocks_s"][::turn]} for one in measured]
    return [ratio_of(one) for one in rounds]


def ratio_of(rounds: list[dict[str, Any]]) -> Interval | str:
    """Return the time of the second engine over the first, or that other load left too little."""
    kept = undisturbed_rounds(rounds)
    if len(kept) < FEWEST_ROUNDS:
        return f"disturbed by other load: {len(kept)} of {len(rounds)} rounds count"
    return speedup(blocks_of(kept, 0), blocks_of(kept, 1), loads=LOADS)


def side_of(report: Report, key: Key) -> Side:
    """Return the engine of a result; raise TightropeError unless it is still there as measured."""
    result = report.results[key]
    model = report.path.absolute().parents[1] / "artifacts" / key.model
    engine = model / "engines" / (result.get("stored_as") or key.variant) / "engine.json"
    if not engine.is_file():
        raise TightropeError(f"{engine}: the engine is not there any more")
    if sha256(engine) != result.get("engine_sha256"):
        raise TightropeError(f"{engine}: another engine than the one that was measured")
    threads = result.get("threads")
    if not threads:
        raise TightropeError(f"{'/'.join(key)}: its report does not say with how many threads")
    require_libraries(engine)
    checkpoint, data = model / "checkpoint/checkpoint.json", model / "splits/timing.json"
    return Side(engine, checkpoint, data, threads)


def require_libraries(engine: Path) -> None:
    """Raise TightropeError where an engine was built with other libraries than those installed."""
    built = read_manifest(engine, EngineManifest)["libraries"]
    here = library_versions(*built)
    if name := next((one for one in built if built[one] != here[one]), None):
        raise TightropeError(
            f"{engine}: built with {name} {built[name]}, here is {here[name]}: one process has one"
        )
