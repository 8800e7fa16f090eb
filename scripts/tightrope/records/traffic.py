"""Record of traffic, and the rounds of its tests."""

import statistics
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct

from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.records.record import TimedRecord
from tightrope.statistics import Interval, speedup

# fewest rounds that count for a number
FEWEST_ROUNDS = 3
FIXED = "fixed"


class Rate(Struct, kw_only=True, forbid_unknown_fields=True):
    """A test of LoadGen at one rate of the Server scenario.

    `late` is the number of queries over the bound; `valid`: p99 within it at confidence 0.99.
    """

    target_per_s: float
    issued_per_s: float
    duration_s: float
    p99_s: float
    queries: int
    late: int
    valid: bool
    foreign_cores: float


class RoundTest(Struct, kw_only=True, forbid_unknown_fields=True, tag_field="scenario"):
    """A test in a round, which has one of each padding, another one first each time.

    `name` is that of the padding; rounds are counted from 1. `valid` is LoadGen's verdict,
    `foreign_cores` are the cores that other programs used meanwhile. Disturbed rounds are kept.
    """

    name: str
    round: int
    duration_s: float
    valid: bool
    foreign_cores: float


class SingleStreamTest(RoundTest, kw_only=True, tag="single_stream"):
    """Queries one at a time."""

    queries: int
    p50_s: float
    p90_s: float
    p99_s: float


class OfflineTest(RoundTest, kw_only=True, tag="offline"):
    """All samples queued at once: in each test the same ones, all or some of the split.

    They are sent once or several times. Of texts there are the `tokens` of the samples, and the
    `padded_tokens` that padding added.
    """

    samples: int
    samples_per_s: float
    batches: int
    tokens: int | None = None
    padded_tokens: int | None = None


class ServerTest(
    Struct, kw_only=True, forbid_unknown_fields=True, tag_field="scenario", tag="server"
):
    """The search of the highest rate of queries at random times, `rates` as they were tried.

    `highest_per_s` is the highest valid target, with its `issued_per_s`; both None with a `reason`
    where no target was valid.
    """

    name: str
    duration_s: float
    rates: list[Rate] = []
    highest_per_s: float | None = None
    issued_per_s: float | None = None
    reason: str | None = None


Test = SingleStreamTest | OfflineTest | ServerTest
Kind = TypeVar("Kind", bound=RoundTest)


class Answers(Struct, kw_only=True, forbid_unknown_fields=True):
    """Predictions and margins of all samples, in the order of the split."""

    predictions: list[int]
    margins: list[float]


class TrafficRecord(TimedRecord, kw_only=True):
    """Tests of MLCommons LoadGen on the split for timing, per padding and scenario.

    `samples` is the number of examples sent: all texts; of images the first ones that fit in the
    memory reserved for them; None where the job failed before. `lengths` are the tokens of each
    example in the order of the split, `edges` those of the length buckets (empty where not
    requested), `longest` the length that padding `fixed` pads to. Images have `height` and `width`
    instead, and a single padding, `none`. `data_sha256` is that of the manifest of the
    split, `plan` the `traffic` settings that apply to the model.

    `answers` are by padding, from a run without LoadGen before the first offline test. `logs` maps
    paths relative to the record to the sha256 of LoadGen's files.
    """

    data_sha256: str | None = None
    plan: dict[str, Any]
    longest: int | None
    samples: int | None = None
    height: int | None = None
    width: int | None = None
    lengths: list[int] = []
    edges: list[int] = []
    tests: list[Test] = []
    answers: dict[str, Answers] = {}
    logs: dict[str, str] = {}


def in_rounds(tests: Iterable[Test | RoundTest], kind: type[Kind]) -> dict[int, list[Kind]]:
    """Return the tests of a scenario by round."""
    rounds: dict[int, list[Kind]] = {}
    for test in tests:
        if isinstance(test, kind):
            rounds.setdefault(test.round, []).append(test)
    return rounds


def counted_rounds(
    tests: Iterable[Test | RoundTest], kind: type[Kind], *, disturbed: bool = False
) -> list[int]:
    """Return the rounds whose tests are all valid, and none of them disturbed by other load.

    With `disturbed` rounds that were disturbed count too.
    """
    return [
        number
        for number, own in in_rounds(tests, kind).items()
        if all(test.valid for test in own)
        and (disturbed or max(test.foreign_cores for test in own) <= MAX_FOREIGN_CORES)
    ]


def counted_tests(
    tests: Sequence[Test | RoundTest], kind: type[Kind], name: str, *, disturbed: bool = False
) -> list[Kind]:
    """Return the tests of a name in the rounds that count, empty if these are too few.

    With `disturbed` disturbed rounds count if the others are too few.
    """
    counted = counted_rounds(tests, kind)
    if len(counted) < FEWEST_ROUNDS and disturbed:
        counted = counted_rounds(tests, kind, disturbed=True)
    if len(counted) < FEWEST_ROUNDS:
        return []
    rounds = in_rounds(tests, kind)
    return [test for number in counted for test in rounds[number] if test.name == name]


def gain_over_fixed(
    tests: Sequence[Test | RoundTest], padding: str, *, disturbed: bool = False
) -> Interval | None:
    """Return how many times the samples per second of padding `fixed` another padding has.

    From the ratio of each round, see `statistics.speedup`; the two share one loaded engine. None
    without enough rounds of both.
    """
    own, fixed = (
        counted_tests(tests, OfflineTest, name, disturbed=disturbed) for name in (padding, FIXED)
    )
    if not own or not fixed:
        return None
    seconds = [[[1 / test.samples_per_s] for test in one] for one in (own, fixed)]
    return speedup(*seconds, loads=1)


def gain_of_padding(tests: Sequence[Test], padding: str) -> float | None:
    """Return the gain over `fixed` that padding alone explains, None if it was not measured.

    Tokens with padding that a sample takes with `fixed`, over those that it takes with `padding`:
    the gain of an engine whose time is proportional to the tokens.
    """
    own, fixed = (tokens_of(tests, name) for name in (padding, FIXED))
    return fixed.per_sample / own.per_sample if own and fixed else None


def median_of(values: Sequence[float]) -> float | None:
    """Return the median, None without any."""
    return statistics.median(values) if values else None


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
    own = [test for test in tests if isinstance(test, OfflineTest) and test.name == padding]
    counts = [(one.samples, one.tokens or 0, one.padded_tokens or 0) for one in own if one.tokens]
    return Tokens(*map(sum, zip(*counts, strict=True))) if counts else None
