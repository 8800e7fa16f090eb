"""Record of traffic, and the rounds of its tests."""

import statistics
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple, TypedDict

from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.records.record import Record
from tightrope.statistics import Interval, speedup

# scenarios that are measured in rounds; fewest rounds that count for a number
SINGLE_STREAM, OFFLINE = "single_stream", "offline"
FEWEST_ROUNDS = 3
FIXED = "fixed"
# an entry of `tests`, see TrafficRecord
Test = dict[str, Any]


class Rate(TypedDict, total=False):
    """A test of LoadGen at one rate of the Server scenario."""

    target_per_s: float
    issued_per_s: float
    duration_s: float
    p99_s: float | None
    queries: int
    late: int
    valid: bool
    foreign_cores: float | None


class TrafficTest(TypedDict, total=False):
    """An entry of `tests` of a TrafficRecord."""

    name: str
    scenario: str
    round: int
    duration_s: float
    valid: bool
    queries: int
    p50_s: float | None
    p90_s: float | None
    p99_s: float | None
    samples: int
    samples_per_s: float | None
    batches: int
    tokens: int
    padded_tokens: int
    rates: list[Rate]
    highest_per_s: float | None
    issued_per_s: float | None
    reason: str | None
    foreign_cores: float | None


class TrafficRecord(Record, kw_only=True):
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
    lengths: list[int] = []
    edges: list[int] = []
    tests: list[dict[str, Any]] = []
    lost_s: float = 0.0
    busiest: dict[str, float] = {}
    answers: dict[str, dict[str, list[Any]]] = {}
    logs: dict[str, str] = {}


def in_rounds(tests: Iterable[Test], scenario: str) -> dict[int, list[Test]]:
    """Return the tests of a scenario by round."""
    rounds: dict[int, list[Test]] = {}
    for test in tests:
        if test["scenario"] == scenario:
            rounds.setdefault(test["round"], []).append(test)
    return rounds


def counted_rounds(tests: Iterable[Test], scenario: str, *, disturbed: bool = False) -> list[int]:
    """Return the rounds whose tests are all valid, and none of them disturbed by other load.

    With `disturbed` rounds that were disturbed count too.
    """
    return [
        number
        for number, own in in_rounds(tests, scenario).items()
        if all(test["valid"] for test in own)
        and (disturbed or max(test["foreign_cores"] for test in own) <= MAX_FOREIGN_CORES)
    ]


def counted_tests(
    tests: Sequence[Test], scenario: str, name: str, *, disturbed: bool = False
) -> list[Test]:
    """Return the tests of a name in the rounds that count, empty if these are too few.

    With `disturbed` disturbed rounds count if the others are too few.
    """
    counted = counted_rounds(tests, scenario)
    if len(counted) < FEWEST_ROUNDS and disturbed:
        counted = counted_rounds(tests, scenario, disturbed=True)
    if len(counted) < FEWEST_ROUNDS:
        return []
    return [
        test
        for number, own in in_rounds(tests, scenario).items()
        for test in own
        if number in counted and test["name"] == name
    ]


def median_of(tests: Sequence[Test], figure: str) -> float | None:
    """Return the median of a figure over tests, None without any."""
    return statistics.median(test[figure] for test in tests) if tests else None


def gain_over_fixed(
    tests: Sequence[Test], padding: str, *, disturbed: bool = False
) -> Interval | None:
    """Return how many times the samples per second of padding `fixed` another padding has.

    From the ratio of each round, see `statistics.speedup`; the two share one loaded engine. None
    without enough rounds of both.
    """
    own, fixed = (
        counted_tests(tests, OFFLINE, name, disturbed=disturbed) for name in (padding, FIXED)
    )
    if not own or not fixed:
        return None
    seconds = [[[1 / test["samples_per_s"]] for test in one] for one in (own, fixed)]
    return speedup(*seconds, loads=1)


def gain_of_padding(tests: Sequence[Test], padding: str) -> float | None:
    """Return the gain over `fixed` that padding alone explains, None if it was not measured.

    Tokens with padding that a sample takes with `fixed`, over those that it takes with `padding`:
    the gain of an engine whose time is proportional to the tokens.
    """
    own, fixed = (tokens_of(tests, name) for name in (padding, FIXED))
    return fixed.per_sample / own.per_sample if own and fixed else None


class Tokens(NamedTuple):
    """Tokens of samples, and those that padding added."""

    samples: int
    real: int
    added: int

    @property
    def per_sample(self) -> float:
        """Return the mean tokens of a sample with padding."""
        return (self.real + self.added) / self.samples

    @property
    def padding_share(self) -> float:
        """Return the share of padding in all tokens."""
        return self.added / (self.real + self.added)


def tokens_of(tests: Iterable[Test], padding: str) -> Tokens | None:
    """Return the tokens of all offline tests of a padding; None without any, and for images."""
    own = [
        test
        for test in tests
        if (test["scenario"], test["name"]) == (OFFLINE, padding) and "tokens" in test
    ]
    counts = ("samples", "tokens", "padded_tokens")
    return Tokens(*(sum(test[name] for test in own) for name in counts)) if own else None
