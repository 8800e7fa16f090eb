"""Records that are measured on request only, and their entries in summary.json."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from tightrope.records.causes import CausesRecord
from tightrope.records.idleness import IdlenessRecord
from tightrope.records.profile import ProfileRecord
from tightrope.records.record import Record
from tightrope.records.throughput import ThroughputRecord
from tightrope.records.traffic import TrafficRecord
from tightrope.records.training import TrainingRecord
from tightrope.summary.causes import causes_entry
from tightrope.summary.causes_types import Causes
from tightrope.summary.idleness import idleness_entry
from tightrope.summary.idleness_types import Idleness
from tightrope.summary.own_records import Engines, read_own
from tightrope.summary.profile import profile_entry
from tightrope.summary.profile_types import Profile
from tightrope.summary.throughput import throughput_entries
from tightrope.summary.throughput_types import Throughput
from tightrope.summary.traffic import traffic_entries
from tightrope.summary.training import training_entries
from tightrope.summary.workload_types import Traffic, Training


@dataclass(frozen=True)
class Requested:
    """Records of traffic, instances, operators, pauses, causes and trainings.

    With `accept_disturbed` what other load disturbed has numbers too, and they are provisional.
    """

    traffic: list[TrafficRecord]
    throughputs: list[ThroughputRecord]
    profiles: list[ProfileRecord]
    idleness: list[IdlenessRecord]
    causes: list[CausesRecord]
    trainings: list[TrainingRecord]
    accept_disturbed: bool

    @classmethod
    def of(cls, inputs: Any, in_use: Engines, *, accept_disturbed: bool) -> Self:
        """Return the records of a run, see `inputs.Inputs`; raises as `read_own` does."""
        return cls(
            [read_own(path, TrafficRecord, in_use) for path in inputs.traffic],
            [read_own(path, ThroughputRecord, in_use) for path in inputs.throughputs],
            [read_own(path, ProfileRecord, in_use) for path in inputs.profiles],
            [read_own(path, IdlenessRecord, in_use) for path in inputs.idleness],
            [read_own(path, CausesRecord, in_use) for path in inputs.causes],
            [read_own(path, TrainingRecord, in_use) for path in inputs.training],
            accept_disturbed,
        )

    def records(self) -> Iterator[Record]:
        """Yield all records."""
        yield from (*self.traffic, *self.throughputs, *self.profiles)
        yield from (*self.idleness, *self.causes, *self.trainings)

    def traffic_entries(self) -> list[Traffic]:
        """Return `traffic` of the summary, in record order."""
        return traffic_entries(self.traffic, accept_disturbed=self.accept_disturbed)

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

    def causes_entries(self) -> list[Causes]:
        """Return `causes` of the summary, in record order."""
        accept = self.accept_disturbed
        return [causes_entry(one, accept_disturbed=accept) for one in self.causes]

    def training_entries(self) -> list[Training]:
        """Return `training` of the summary, in record order."""
        return training_entries(self.trainings, accept_disturbed=self.accept_disturbed)
