"""Traffic entries of summary.json. Times are in seconds; None means not known."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypedDict

from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.records.kept import disturbed_while
from tightrope.records.traffic import (
    FEWEST_ROUNDS,
    FIXED,
    Answers,
    OfflineTest,
    Rate,
    RoundTest,
    ServerTest,
    SingleStreamTest,
    Test,
    TrafficRecord,
    counted_rounds,
    counted_tests,
    gain_of_padding,
    gain_over_fixed,
    in_rounds,
    median_of,
    tokens_of,
)
from tightrope.statistics import SpeedVerdict, speed_verdict
from tightrope.summary.measured import Measured, measured_entry

# logit margin up to which floating-point error alone can change the prediction
TIE = 1e-3
LOADGEN = "mlcommons-loadgen"
SERVER = "server"


class Lengths(TypedDict):
    """Distinct lengths in tokens, and how many samples have each."""

    tokens: list[int]
    samples: list[int]


class Changes(TypedDict):
    """Number of predictions that differ from those of padding `fixed`, by their margin."""

    changed: int | None
    ties_changed: int | None


class Gain(TypedDict):
    """Throughput over that of padding `fixed`, with its 95 % interval."""

    gain: float | None
    gain_low: float | None
    gain_high: float | None
    gain_verdict: SpeedVerdict | None


class TrafficRow(Changes, Gain):
    """Rates and tail latency with one kind of padding."""

    padding: str
    disturbed: str | None
    provisional: bool
    samples_per_s: float | None
    single_stream_p90_s: float | None
    single_stream_p99_s: float | None
    server_per_s: float | None
    server_p99_s: float | None
    server_reason: str | None
    padding_share: float | None
    padding_gain: float | None


class Traffic(Measured):
    """A variant under the traffic of LoadGen."""

    threads: int
    batch: int
    p99_bound_s: float
    samples: int | None
    longest: int | None
    height: int | None
    width: int | None
    edges: list[int]
    lengths: Lengths
    rows: list[TrafficRow]
    loadgen: str | None


def traffic_entry(record: TrafficRecord, *, accept_disturbed: bool = False) -> Traffic:
    """Return the entry of a traffic record; values without a valid measurement are None.

    Only rounds count whose tests are all valid and undisturbed. With fewer than `FEWEST_ROUNDS` of
    them, the times of a scenario are None and `disturbed` of the row gives the reason; with
    `accept_disturbed` they are given, and the row is `provisional`.

    Times are medians over rounds. `padding_share` is the share of padding in all tokens, `gain` is
    the throughput over that of the padding `fixed`, from the ratio of each round, `padding_gain`
    what padding alone explains of it; images are not padded and have none of these. `changed`
    counts predictions that differ from those of `fixed` where its margin is above 1e-3,
    `ties_changed` the other differences.
    """
    lengths = sorted(Counter(record.lengths).items())
    rows = [padding_row(record, one, accept_disturbed) for one in record.plan["padding"]]
    return {
        **measured_entry(record),
        "threads": record.threads,
        "batch": record.plan["batch"],
        "p99_bound_s": record.plan["p99_bound_s"],
        "samples": record.samples,
        "longest": record.longest,
        "height": record.height,
        "width": record.width,
        "edges": record.edges,
        "lengths": {
            "tokens": [length for length, _ in lengths],
            "samples": [count for _, count in lengths],
        },
        "rows": rows if record.status == "ok" else [],
        "loadgen": record.libraries.get(LOADGEN),
    }


def padding_row(record: TrafficRecord, padding: str, accept_disturbed: bool) -> TrafficRow:
    """Return the row of one padding mode."""
    tests, tokens = record.tests, tokens_of(record.tests, padding)
    single = counted_tests(tests, SingleStreamTest, padding, disturbed=accept_disturbed)
    offline = counted_tests(tests, OfflineTest, padding, disturbed=accept_disturbed)
    server = server_test(tests, padding, accept_disturbed)
    disturbed = why_disturbed(record, padding)
    return {
        "padding": padding,
        "disturbed": disturbed,
        "provisional": bool(disturbed and accept_disturbed),
        "samples_per_s": median_of([test.samples_per_s for test in offline]),
        "single_stream_p90_s": median_of([test.p90_s for test in single]),
        "single_stream_p99_s": median_of([test.p99_s for test in single]),
        "server_per_s": server.issued_per_s if server else None,
        "server_p99_s": server_p99(server) if server else None,
        "server_reason": server.reason if server else None,
        **gain_entry(tests, padding, accept_disturbed),
        "padding_share": tokens.padding_share if tokens else None,
        "padding_gain": gain_of_padding(tests, padding),
        **changes(record.answers.get(FIXED), record.answers.get(padding)),
    }


def gain_entry(tests: Sequence[Test], padding: str, accept_disturbed: bool) -> Gain:
    """Return the gain over the padding `fixed`, with its interval."""
    found = gain_over_fixed(tests, padding, disturbed=accept_disturbed)
    if found is None or padding == FIXED:
        value = None if found is None else 1.0
        return {"gain": value, "gain_low": None, "gain_high": None, "gain_verdict": None}
    return {
        "gain": found.value,
        "gain_low": found.low,
        "gain_high": found.high,
        "gain_verdict": speed_verdict(found),
    }


def server_test(tests: Iterable[Test], padding: str, accept_disturbed: bool) -> ServerTest | None:
    """Return the server test of one padding, None if there is none.

    A disturbed one counts only with `accept_disturbed`.
    """
    found = (one for one in tests if isinstance(one, ServerTest) and one.name == padding)
    server = next(found, None)
    disturbed = server and most_cores(server.rates) > MAX_FOREIGN_CORES
    return None if disturbed and not accept_disturbed else server


def server_p99(server: ServerTest) -> float | None:
    """Return the p99 latency in seconds at the highest valid rate, None without one."""
    valid = [rate for rate in server.rates if rate.valid]
    passed = [rate.p99_s for rate in valid if rate.target_per_s == server.highest_per_s]
    return max(passed, default=None)


def most_cores(tests: Iterable[RoundTest | Rate]) -> float:
    """Return the most cores that other programs used in one of these tests."""
    return max((test.foreign_cores for test in tests), default=0.0)


def why_disturbed(record: TrafficRecord, padding: str) -> str | None:
    """Return which scenarios of one padding other load disturbed, None without any."""
    used, words = 0.0, []
    kinds: dict[str, type[RoundTest]]
    kinds = {"single stream": SingleStreamTest, "offline": OfflineTest}
    for scenario, kind in kinds.items():
        own = [test for test in record.tests if isinstance(test, kind)]
        kept, valid = counted_rounds(own, kind), counted_rounds(own, kind, disturbed=True)
        if len(kept) < min(FEWEST_ROUNDS, len(valid)):
            used = max(used, most_cores(own))
            rounds = len(in_rounds(own, kind))
            words.append(
                f"{scenario} ({len(kept)} of {rounds} rounds were undisturbed, {FEWEST_ROUNDS} are "
                "needed)"
            )
    server = server_test(record.tests, padding, accept_disturbed=True)
    if server and (cores := most_cores(server.rates)) > MAX_FOREIGN_CORES:
        used = max(used, cores)
        words.append(SERVER)
    return disturbed_while(" and ".join(words), used, record.busiest) if words else None


def changes(fixed: Answers | None, own: Answers | None) -> Changes:
    """Count predictions that differ from those of `fixed`, with ties counted separately."""
    if fixed is None or own is None:
        return {"changed": None, "ties_changed": None}
    margins = [
        margin
        for before, after, margin in zip(
            fixed.predictions, own.predictions, fixed.margins, strict=True
        )
        if before != after
    ]
    changed = sum(margin > TIE for margin in margins)
    return {"changed": changed, "ties_changed": len(margins) - changed}
