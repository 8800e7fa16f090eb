"""What entries of measurements say: whose record it is, what disturbed it; those of studies.

Times are in seconds; None means not known.
"""

import statistics
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import msgspec

from tightrope.artifacts.files import sha256
from tightrope.errors import ArtifactError
from tightrope.machine.host import host_key
from tightrope.machine.interference import MAX_FOREIGN_CORES, SLOWDOWNS, Counters, disturbance
from tightrope.records.family import model_and_variant
from tightrope.records.latency import Reference, TimedShape
from tightrope.records.race import RaceRecord
from tightrope.records.record import TRAINING, Record, named, require_engine
from tightrope.statistics import Interval, SpeedVerdict, speed_verdict
from tightrope.studies.study import Study, StudyRecord
from tightrope.studies.table import STUDIES

# share of a core that the idle engine of a pair may use during a block
IDLE_SHARE = 0.02
DRIFT = 0.10
CAUSES = {
    "waited": "their threads waited for a CPU that another program used",
    "preempted": "their threads were preempted by another program",
    "stolen": "the hypervisor took the processor",
    "throttled": "the GPU was throttled",
    "shared": "other processes on the GPU",
}
OF_THE_GPU = {"throttled", "shared"}
Attempt = Literal["ok", "failed"]


class Entry(msgspec.Struct, forbid_unknown_fields=True):
    """An entry of summary.json; None means not known."""


class Shape(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Sizes of an input; one that it does not have is left out."""

    batch: int
    """Examples of a call."""
    sequence: int | None = None
    """Tokens of each text, padding included."""
    tokens: int | None = None
    """How many of them are no padding; only at [a padded shape](measurement.md#latency)."""
    height: int | None = None
    width: int | None = None
    """Pixels of each image."""

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes that it has, by name."""
        known = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: size for name, size in known if size is not None}

    def __lt__(self, other: "Shape") -> bool:
        """Return whether it is the smaller one, by the sizes in their order."""
        return [*self.sizes.items()] < [*other.sizes.items()]


class Ratio(Entry, kw_only=True):
    """A speed-up: the time of another over its own, with its 95 % interval."""

    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    """None if `verdict` is `disturbed`."""
    verdict: SpeedVerdict | Literal["disturbed"]
    """`faster` or `slower` where the whole interval is on that side of 1, else `tie`; `disturbed`
    where other load left no measurement."""

    @classmethod
    def of(cls, found: Interval, **more: Any) -> Self:
        """Return a ratio of times with its interval and verdict, and `more` fields of its kind."""
        value, low, high = found
        return cls(ratio=value, low=low, high=high, verdict=speed_verdict(found), **more)


def interval_of(found: Ratio | None) -> Interval | None:
    """Return the interval of a ratio of times, None if it was not measured."""
    if found is None or found.ratio is None or found.low is None or found.high is None:
        return None
    return Interval(found.ratio, found.low, found.high)


def number(value: float) -> str:
    """Format a number with three significant digits, without an exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def milliseconds(seconds: float) -> str:
    """Format seconds in milliseconds with three significant digits."""
    return f"{number(1e3 * seconds)} ms"


class Measured(Entry):
    """What was measured of a variant of a model."""

    model: str
    variant: str
    host: str
    """Of which variant, on which machine of `hosts`."""
    status: Attempt
    reason: str | None
    """Why it failed, else None."""
    measured: str
    """When, in UTC."""


def same(source: Any, *names: str) -> dict[str, Any]:
    """Return these attributes of a record, which are fields of an entry, by name."""
    return {name: getattr(source, name) for name in names}


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


def causes(pairs: list[Counters], windows: list[float | None], busiest: dict[str, float]) -> str:
    """Name what disturbed the pairs, the most frequent first, and the busiest programs."""
    counts = Counter(filter(None, (disturbance(pair, windows) for pair in pairs)))
    reasons = SLOWDOWNS & {reason for pair in pairs for reason in pair.throttled or ()}
    why = {"throttled": f" ({', '.join(sorted(reasons))})"}
    words = " and ".join(CAUSES[one] + why.get(one, "") for one, _ in counts.most_common())
    return words + (named(busiest) if counts.keys() - OF_THE_GPU else "")


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


class StudyEntry(Measured):
    """What a study found of a variant."""

    shape: dict[str, int]
    """The sizes that all inputs have in common."""
    threads: int
    """Per operator, as configured."""
    spent_s: float
    """Of all calls with loads."""
    words: list[str]
    """Sentences on all rows."""
    rows: list[dict[str, Any]]
    """Each study has rows of its own, see below; none if it failed."""


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
