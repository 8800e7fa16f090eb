"""Records that are measured on request only, and their entries in summary.json."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from tightrope.records.idleness import IdlenessRecord
from tightrope.records.profile import ProfileRecord
from tightrope.records.record import Record
from tightrope.records.throughput import ThroughputRecord
from tightrope.summary.idleness import idleness_entry
from tightrope.summary.idleness_types import Idleness
from tightrope.summary.profile import profile_entry
from tightrope.summary.profile_types import Profile
from tightrope.summary.throughput import throughput_entries
from tightrope.summary.throughput_types import Throughput


@dataclass(frozen=True)
class Requested:
    """Records of several instances, of operators and of pauses.

    With `accept_disturbed` what other load disturbed has numbers too, and they are provisional.
    """

    throughputs: list[ThroughputRecord]
    profiles: list[ProfileRecord]
    idleness: list[IdlenessRecord]
    accept_disturbed: bool

    @classmethod
    def of(cls, inputs: Any, *, accept_disturbed: bool) -> Self:
        """Return the records of a run, see `summarize.Inputs`."""
        return cls(
            [ThroughputRecord.read(path) for path in inputs.throughputs],
            [ProfileRecord.read(path) for path in inputs.profiles],
            [IdlenessRecord.read(path) for path in inputs.idleness],
            accept_disturbed,
        )

    def records(self) -> Iterator[Record]:
        """Yield all records."""
        yield from (*self.throughputs, *self.profiles, *self.idleness)

    def throughput_entries(self) -> list[Throughput]:
        """Return `throughput` of the summary, in record order."""
        return throughput_entries(self.throughputs, accept_disturbed=self.accept_disturbed)

    def profile_entries(self) -> list[Profile]:
        """Return `profiles` of the summary, in record order."""
        return [profile_entry(record) for record in self.profiles]

    def idleness_entries(self) -> list[Idleness]:
        """Return `idleness` of the summary, in record order."""
        accept = self.accept_disturbed
        return [idleness_entry(one, accept_disturbed=accept) for one in self.idleness]
