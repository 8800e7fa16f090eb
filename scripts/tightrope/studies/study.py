"""What a study consists of: settings, calls, rows, how it is measured, and how it is shown.

The section of the configuration, the rule, the record, the entry of summary.json, and the table and
the chart of the page follow from it.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Protocol, get_type_hints

import msgspec

from tightrope.config.types import UNIQUE, Section
from tightrope.errors import ArtifactError
from tightrope.jobs.child import Child
from tightrope.machine.interference import MAX_FOREIGN_CORES, QuietMachine
from tightrope.records.record import TimedRecord
from tightrope.statistics import Interval

Shape = dict[str, int]
Words = Sequence[str]


class Settings(Section, frozen=True):
    """The section of the configuration: its keys with defaults, and below each what it does."""

    variants: Annotated[tuple[str, ...], UNIQUE] = ()
    """Their names; none by default."""


class Column(NamedTuple):
    """A column of the page: its title, where | breaks a line, and the unit of a field.

    Units: `ms` of seconds, `s`, `count`, `rate`, `rough rate`, `ratio`, `percent` of a fraction,
    `text`. A ratio whose interval is above `slower` is marked, or as the field `verdict` says.
    """

    title: str
    unit: str
    slower: float | None = None
    verdict: str = ""


class Estimate(msgspec.Struct):
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float
    """The interval is from `low` to `high`."""

    @classmethod
    def of(cls, interval: Interval | None) -> "Estimate | None":
        """Return an interval as an entry, None for none."""
        return None if interval is None else cls(*interval)


class Row(msgspec.Struct, kw_only=True):
    """A row of the page, of summary.json and of its schema; a field with a Column has a column."""

    calls: int | None = None
    """How many count."""
    reason: str | None = None
    """Why it has no numbers, else None."""
    disturbed: str | None = None
    """That other load left too few calls, else None."""
    provisional: bool = False
    """Whether the numbers are given anyway (`latency.accept_disturbed`)."""


class StudyRecord(TimedRecord, kw_only=True):
    """What a study measured of a variant: its calls as they came, without statistics.

    `settings` are those of the study but `variants`, `shape` the sizes that all inputs have in
    common, `processors` those to which the engine was pinned, or all that it had. `spent_s` are the
    seconds of all calls with loads.
    """

    study: str
    processors: list[int]
    settings: dict[str, Any]
    shape: Shape = {}
    spent_s: float = 0.0
    calls: list[Any] = []


class Bench(Protocol):
    """What a study measures with: an engine that is loaded as often as it asks.

    `processors` are those of the job's `threads`, `machine` holds the time that other load may
    cost. `shape` is what the record says of the inputs, `folder` is for files beside the record,
    `began` by `time.monotonic()` when.
    """

    processors: list[int]
    machine: QuietMachine
    shape: Shape
    folder: Path
    began: float

    @property
    def threads(self) -> int:
        """Return the threads of the job."""

    @property
    def spent_s(self) -> float:
        """Return the seconds since the beginning without those lost to other load."""
        return time.monotonic() - self.began - self.machine.lost_s

    def size(self, sequence: int, key: str) -> Shape:
        """Return the size of each input: `sequence` tokens, or the image of the model.

        Raises TightropeError, naming the key, where the model takes fewer tokens.
        """

    def engines(
        self, shapes: Sequence[Shape], pins: Sequence[Sequence[int]] | None = None
    ) -> AbstractContextManager[list[Child]]:
        """Load an engine per entry of `pins`, with as many threads as it has processors.

        By default one with all `processors`. Each answers the requests of
        `measure.timed_engine.TimedEngine` about inputs of these shapes, by their index.
        """

    def serving(self, server: Callable[..., Any]) -> AbstractContextManager[Child]:
        """Start a child that answers with `server(load, longest)`, on all processors.

        `load`, called there, returns the engine, from inputs to the class and the margin of each
        row, and the encoded examples of the split, which have at most `longest` tokens.
        """

    def quietly(self, measured: Callable[[], Any]) -> Iterator[Any]:
        """Yield what is measured, again while other load disturbs it and time may be lost."""
        while True:
            began = time.monotonic()
            call = measured()
            yield call
            if call.foreign_cores <= MAX_FOREIGN_CORES or not self.machine.left_s:
                return
            self.machine.lose(time.monotonic() - began)
            self.machine.wait_for_idle_gap()


class Study(NamedTuple):
    """A study, which is the section `name` of the configuration and the rule measure_`name`.

    Its module also has `measure(bench, settings)`, which yields the calls, each of type `call` with
    its `foreign_cores`; an engine that fails ends it. It is found by its name, so that what shows a
    study does not depend on how it measures. `rows(record, accept)` returns the rows of the calls
    that count, of disturbed ones too if those are to be accepted. `words(rows, record)` are
    sentences on all of them; where it has a `remark`, a word, they stand at the variant's row of
    latency. `chart` has a mark per row, above the folded table. `cpu_only` says what to use on a
    GPU, `libraries` are those that measure it besides the engine's.
    """

    name: str
    settings: type[Settings]
    call: Any
    row: type[Row]
    rows: Callable[[StudyRecord, bool], list[Any]]
    about: str
    link: str
    title: str
    lead: str
    note: str = ""
    words: Callable[[Sequence[Any], StudyRecord], Words] = lambda rows, record: ()
    remark: str = ""
    chart: "Heat | Lines | None" = None
    cpu_only: str = ""
    libraries: Sequence[str] = ()

    @property
    def columns(self) -> dict[str, Column]:
        """The column of each field that has one."""
        hints = get_type_hints(self.row, include_extras=True)
        found = {
            name: [one for one in getattr(kind, "__metadata__", ()) if isinstance(one, Column)]
            for name, kind in hints.items()
        }
        return {name: columns[0] for name, columns in found.items() if columns}

    def read(self, path: Path | str) -> StudyRecord:
        """Return the record in `path`; raise ArtifactError as `Record.read` does."""
        record = StudyRecord.read(path)
        try:
            record.calls = msgspec.convert(record.calls, list[self.call])  # type: ignore[name-defined]
        except msgspec.ValidationError as error:
            raise ArtifactError(f"{path}: calls: {error}; delete it, run again") from error
        return record


class Heat(NamedTuple):
    """A heat map: a column per value of `x`, a row per text of `y`, coloured by the estimate.

    `value` and `below` stand in a cell, the latter with its name.
    """

    x: str
    y: str
    value: str
    below: str


class Lines(NamedTuple):
    """A line per variant: `y`, a time or an estimate with its interval, over the numbers of `x`."""

    x: str
    y: str
