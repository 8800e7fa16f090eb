"""What LoadGen measured under traffic, as it said, and where its logs lie."""

from dataclasses import dataclass, field
from typing import Any

from tightrope.records.record import Record


@dataclass(kw_only=True)
class TrafficRecord(Record):
    """Tests of MLCommons LoadGen on the evaluation split, for each padding and scenario.

    `samples` are how many of the split were sent: all texts, of images the first ones that fit
    into the memory for them, None where it failed before. `lengths` are the tokens of each in the
    order of the split, `edges` those of the buckets (empty where they were not asked for),
    `longest` the length of the padding `fixed`. Images have `height` and `width` in their place,
    and one padding, `none`. `data_sha256` is the split's, `plan` is `traffic` of the configuration
    as far as it concerns the model.

    Each of `tests` holds `padding`, `scenario`, `duration_s` and
    - single_stream: `valid` (LoadGen's verdict), `queries`, `p50_s`, `p90_s`, `p99_s`;
    - offline: `valid`, `samples`, `samples_per_s`, `batches`; of texts `tokens` (of samples) and
      `padded_tokens` (those that padding added);
    - server: `rates`, the tests in the order in which they ran (`target_per_s`, `issued_per_s`,
      `p99_s`, `queries`, `late`: over the bound, `valid`: p99 within the bound with confidence
      0.99); `highest_per_s`, the highest target that was valid, and `issued_per_s` of it; both
      None with a `reason` where none was.
    Both others, and each of `rates`, have `foreign_cores`: what other programs used of the
    processors meanwhile. `lost_s` are the seconds that other load cost, `loudest` the cores that
    the loudest programs used, by name.

    `answers` holds for each padding the `predictions` and `margins` of its offline test, in the
    order of the split. `logs` are the sha256 of LoadGen's files, by path from the record.
    """

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
    loudest: dict[str, float] = field(default_factory=dict)
    answers: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)
