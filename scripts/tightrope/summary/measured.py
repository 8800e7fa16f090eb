"""What entries of measurements say: whose record it is, what disturbed it; those of studies.

Times are in seconds; None means not known.
"""

import statistics
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tightrope.artifacts.files import sha256
from tightrope.decide.result import StudyEntry, same
from tightrope.errors import ArtifactError
from tightrope.machine.host import host_key
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.records.family import model_and_variant
from tightrope.records.latency import Reference, TimedShape
from tightrope.records.race import RaceRecord
from tightrope.records.record import TRAINING, Record, causes, require_engine
from tightrope.studies.study import Study, StudyRecord
from tightrope.studies.table import STUDIES

# share of a core that the idle engine of a pair may use during a block
IDLE_SHARE = 0.02
DRIFT = 0.10


def measured_entry(record: Record) -> dict[str, Any]:
    """Return the fields of `Measured` of a record."""
    names = ("model", "variant", "status", "reason", "measured")
    return {**same(record, *names), "host": host_key(record.host)}


def why_disturbed(shape: TimedShape, busiest: dict[str, float], kept: int, fewest: int) -> str:
    """Explain why a shape with only `kept` undisturbed pairs of blocks has no latency."""
    return (
        f"only {kept} of {len(shape.pairs)} pairs of blocks were undisturbed, {fewest} are needed: "
        f"{causes(shape.pairs, shape.foreign_cores, busiest)}"
    )


def why_noisy(shape: TimedShape, reference: Reference | None) -> list[str]:
    """Explain why the latencies of a shape are noisy; empty if they are not."""
    found = []
    known = [cores for cores in shape.foreign_cores if cores is not None]
    if known and (foreign := statistics.fmean(known)) > MAX_FOREIGN_CORES:
        found.append(f"other programs or the hypervisor used {foreign:.1f} cores of its processors")
    if shape.idle_share > IDLE_SHARE:
        found.append(f"the engine that was not timed used {100 * shape.idle_share:.0f} % of a core")
    if reference is not None:  # the fixed workload before and after
        both = (reference.before, reference.after)
        before, after = (statistics.median(one.rounds_s) for one in both)
        change, word = abs(after / before - 1), "slower" if after > before else "faster"
        if change > DRIFT:
            share = f"{100 * change:.0f} %"
            found.append(f"the machine was {share} {word} after the measurement than before")
    return found


Kind = TypeVar("Kind", bound=Record)
Raced = TypeVar("Raced", bound=RaceRecord)
# SHA-256 of each engine.json in use, by model and variant
Engines = dict[tuple[str, str], str]


def engines_in_use(paths: Iterable[Path | str]) -> Engines:
    """Return the digests of `artifacts/{model}/engines/{variant}/engine.json`."""
    return {(Path(one).parents[2].name, Path(one).parent.name): sha256(one) for one in paths}


def read_own(path: Path | str, read: Callable[[Path | str], Kind], engines: Engines) -> Kind:
    """Return the record `reports/{model}/{variant}.{kind}.json` of an engine in use.

    Raises ArtifactError for a record of another model, variant or engine, and as `read`.
    """
    record, model, variant = read(path), Path(path).parent.name, Path(path).name.rsplit(".", 2)[0]
    if record.variant == TRAINING:
        variant = TRAINING
    if (record.model, record.variant) != (model, variant):
        raise ArtifactError(
            f"{path}: the record of {record.variant} of model {record.model}, not of {variant} of "
            f"{model}; delete it and run again"
        )
    require_engine(path, record.engine_sha256, engines.get((model, variant)))
    return record


def read_own_race(path: Path | str, kind: type[Raced], engines: Engines) -> Raced:
    """Return a record of engines in use that ran in the same rounds; raises as `read_own`.

    Those of a family are named by model and variant, those of a race by variant.
    """
    record, model = kind.read(path), Path(path).parent.name
    if record.model != model:
        raise ArtifactError(
            f"{path}: the record of model {record.model}, not of {model}; delete it and run again"
        )
    for name, digest in record.engines_sha256.items():
        known = model_and_variant(name) if "/" in name else (record.model, name)
        if known not in engines:
            raise ArtifactError(
                f"{path}: raced {name}, which is configured no more; delete it and run again"
            )
        require_engine(path, digest, engines[known])
    return record


def read_studies(paths: Iterable[Path | str], in_use: Engines) -> dict[str, list[StudyRecord]]:
    """Return the records `reports/{model}/{variant}.{study}.json`, by study.

    Raises ArtifactError as `read_own` does.
    """
    found: dict[str, list[StudyRecord]] = {name: [] for name in STUDIES}
    for path in paths:
        name = Path(path).name.split(".")[-2]
        found[name].append(read_own(path, STUDIES[name].read, in_use))
    return found


def study_entry(study: Study, record: StudyRecord, *, accept_disturbed: bool = False) -> StudyEntry:
    """Return the entry of a record; a failed one has no rows.

    A part of which other load left too little has no numbers; with `accept_disturbed` it has, and
    is `provisional`.
    """
    rows = study.rows(record, accept_disturbed) if record.status == "ok" else []
    return StudyEntry(
        **measured_entry(record),
        **same(record, "shape", "threads", "spent_s"),
        words=[*study.words(rows, record)] if rows else [],
        rows=msgspec.to_builtins(rows),
    )
