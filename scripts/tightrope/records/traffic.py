"""Record of traffic: raw results of LoadGen and checksums of its logs."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from tightrope.records.contents import TrafficTest
from tightrope.records.record import Record


@dataclass(kw_only=True)
class TrafficRecord(Record):
    """Tests of MLCommons LoadGen on the split for timing, per padding and scenario.

    `samples` is the number of examples sent: all texts; of images the first ones that fit in the
    memory reserved for them; None where the job failed before. `lengths` are the tokens of each
    example in the order of the split, `edges` those of the length buckets (empty where not
    requested), `longest` the length that padding `fixed` pads to. Images have `height` and `width`
    instead, and a single padding, `none`. `data_sha256` is that of the manifest of the
    split, `plan` the `traffic` settings that apply to the model.

    Each of `tests` holds `name` (the padding), `scenario`, `duration_s` and
    - single_stream: `round`, `valid` (LoadGen's verdict), `queries`, `p50_s`, `p90_s`, `p99_s`;
    - offline: `round`, `valid`, `samples`, `samples_per_s`, `batches`; for texts `tokens` (of the
      samples) and `padded_tokens` (added by padding);
    - server: `rates`, the tests in the order in which they ran (`target_per_s`, `issued_per_s`,
      `p99_s`, `queries`, `late`: number over the bound, `valid`: p99 within the bound at confidence
      0.99); `highest_per_s`, the highest valid target, and its `issued_per_s`; both None with a
      `reason` where no target was valid.

    A round of single_stream or offline, counted from 1, has one test of each padding, another one
    first each time. All offline tests send the same samples, all or some of the split, once or
    several times. Tests of these two, and each of `rates`, have `foreign_cores`: the cores that
    other programs used meanwhile. Disturbed rounds are kept. `lost_s` are the seconds lost to other
    load, `busiest` the cores that the busiest programs used, by name.

    `answers` holds per padding the `predictions` and `margins` of all samples, in the order of the
    split, from a run without LoadGen before the first offline test. `logs` maps paths relative to
    the record to the sha256 of LoadGen's files.
    """

    CONTENTS: ClassVar[dict[str, Any]] = {"tests": list[TrafficTest]}

    data_sha256: str | None = None
    threads: int
    plan: dict[str, Any]
    longest: int | None
    samples: int | None = None
    height: int | None = None
    width: int | None = None
    lengths: list[int] = field(default_factory=list)
    edges: list[int] = field(default_factory=list)
    tests: list[dict[str, Any]] = field(default_factory=list)
    lost_s: float = 0.0
    busiest: dict[str, float] = field(default_factory=dict)
    answers: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)
