"""The scenarios of LoadGen over all paddings: in rounds, or as a search of the highest rate."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Generic

from tightrope.jobs.progress import FULLEST, ProgressBar
from tightrope.machine.interference import MAX_FOREIGN_CORES, window_seconds
from tightrope.measure import traffic_loadgen as loadgen
from tightrope.measure.traffic_loadgen import Bench, Rehearsal, by_length, rehearse
from tightrope.measure.traffic_padding import UNPADDED
from tightrope.records.traffic import (
    FEWEST_ROUNDS,
    Answers,
    Kind,
    OfflineTest,
    Rate,
    ServerTest,
    SingleStreamTest,
    Test,
    counted_rounds,
    gain_over_fixed,
    median_of,
)
from tightrope.statistics import SAMPLES_FOR_PERCENTILE

# scenarios by their names in the plan
SINGLE_STREAM, OFFLINE, SERVER = "single_stream", "offline", "server"
# of the search of a rate: how many are tried at most, and how near they get
RUNS = 9
BRACKET = 1.05
STEP_UP = 1.5
# rounds go on until the interval of each gain is at most this wide, relative to the gain, or the
# tests have taken this many times `seconds` per padding
WIDTH = 0.1
LONGEST_ROUNDS = 2
# most rounds, if other load disturbs most of them
MOST_ROUNDS = 40
# an offline test sends at least this many full batches
FEWEST_BATCHES = 8
QUERIES = SAMPLES_FOR_PERCENTILE[99]
# a rate is not tried if the queries that p99 needs would take this many times `seconds`
LONGEST_TEST = 12
# rates that a search usually tries
USUAL_RATES = 6


class Progress(ProgressBar):
    """Bar over the seconds that all tests are expected to take.

    Each test calls `begin`, then `tell` often, and `end`.
    """

    done = expected = began = 0.0

    def expect(self, seconds: float) -> None:
        """Count tests that were not expected, or with negative seconds tests that are omitted."""
        self.total = self.bar.total = max(self.done, self.total + seconds)

    def begin(self, what: str, expected_s: float) -> None:
        """Show that a test has begun."""
        self.expected, self.began = expected_s, time.monotonic()
        self.bar.n = min(self.done, FULLEST * self.total)
        self.bar.set_description_str(what)

    def tell(self) -> None:
        """Show the time that the test has taken."""
        self.reach(self.done + min(self.expected, time.monotonic() - self.began))

    def end(self) -> None:
        """Count the test as done."""
        self.done += self.expected
        self.expected = 0.0


class RateSearch:
    """Search step by step, so that the searches of several servers can alternate.

    `rate` is the next rate to try, None at the end; `low` is the highest rate that passed, None if
    none did. From `start`, the rate is multiplied by 1.5 while rates pass, or halved while they
    fail, but not below `least`. Then it is the geometric mean of the highest rate that passed and
    the lowest that failed, until they are within 5 %. At most 9 rates, each rounded to three
    significant digits.
    """

    def __init__(self, start: float, *, least: float = 0.0) -> None:
        self.least = least
        self.tried = 0
        self.low: float | None = None
        self.high: float | None = None
        self.rate: float | None = rounded(start)

    def record(self, passed: bool) -> None:
        """Record whether `rate` passed, and choose the next one."""
        if self.rate is None:
            return
        self.tried += 1
        if passed:
            self.low = self.rate
        else:
            self.high = self.rate
        if self.low is None:
            following = self.rate / 2
        elif self.high is None:
            following = self.rate * STEP_UP
        else:
            following = math.sqrt(self.low * self.high)
        narrow = self.low and self.high and self.high <= self.low * BRACKET
        ended = following < self.least or narrow or self.tried == RUNS
        self.rate = None if ended else rounded(following)


def rounded(rate: float) -> float:
    """Return the rate with three significant digits."""
    return float(f"{rate:.3g}")


class Rounds(Generic[Kind]):
    """Rounds of one scenario over all paddings; `tests` are those run so far."""

    def __init__(self, kind: type[Kind], benches: Sequence[Bench], progress: Progress) -> None:
        self.kind = kind
        self.benches = benches
        self.progress = progress
        self.machine, self.plan = benches[0].machine, benches[0].plan
        self.seconds = round_seconds(benches[0])
        self.tests: list[Kind] = []

    def run(self, test: Callable[[Bench, int], Kind]) -> list[Kind]:
        """Run rounds of `test(bench, round)` until they suffice; return the tests."""
        number = 0
        left_s = LONGEST_ROUNDS * self.plan["seconds"] * len(self.benches)
        while number < MOST_ROUNDS and not (number >= FEWEST_ROUNDS and self.suffice(left_s)):
            first = number % len(self.benches)
            number += 1
            for bench in (*self.benches[first:], *self.benches[:first]):
                self.machine.wait()
                one = test(bench, number)
                self.progress.end()
                self.tests.append(one)
                left_s -= one.duration_s
                if one.foreign_cores > MAX_FOREIGN_CORES:
                    left_s += self.machine.lose(one.duration_s)
        return self.tests

    def begin(self, what: str, bench: Bench, number: int, seconds: float) -> None:
        """Show a test that is expected to take `seconds`."""
        if number > FEWEST_ROUNDS:
            self.progress.expect(seconds)
        self.progress.begin(f"{what}, {bench.name}", seconds)

    def suffice(self, left_s: float) -> bool:
        """Return whether no more rounds are needed, or none are possible."""
        if len(counted_rounds(self.tests, self.kind)) < FEWEST_ROUNDS:
            return not self.machine.left_s
        gains = [gain_over_fixed(self.tests, bench.name) for bench in self.benches]
        wide = any(one and one.high - one.low > WIDTH * one.value for one in gains)
        return left_s <= 0 or not wide


def round_seconds(bench: Bench) -> float:
    """Return the length of a test in a round: `seconds` divided among the fewest rounds.

    At least as long as foreign load needs to be seen.
    """
    shortest = window_seconds(len(bench.machine.processors))
    return max(bench.plan["seconds"] / FEWEST_ROUNDS, shortest)


def single_stream_tests(
    benches: Sequence[Bench], rehearsals: Mapping[str, Rehearsal], progress: Progress
) -> list[SingleStreamTest]:
    """Measure latencies of one query at a time, in batches of one."""
    rounds = Rounds(SingleStreamTest, benches, progress)
    per_s = {
        name: 2 / (rehearsed.short_s + rehearsed.long_s) for name, rehearsed in rehearsals.items()
    }

    def test(bench: Bench, number: int) -> SingleStreamTest:
        expected = per_s[bench.name]
        queries = max(SAMPLES_FOR_PERCENTILE[90], math.ceil(rounds.seconds * expected))
        settings = loadgen.single_stream(expected_per_s=expected)
        name = f"{SINGLE_STREAM}-{number}"
        rounds.begin("single stream", bench, number, queries / expected)
        facts, _ = bench.test(name, settings, queries=queries, tell=progress.tell)
        per_s[bench.name] = 1 / facts["p50_s"]
        return SingleStreamTest(name=bench.name, round=number, **facts)

    return rounds.run(test)


def offline_tests(
    benches: Sequence[Bench], rehearsals: Mapping[str, Rehearsal], progress: Progress
) -> list[OfflineTest]:
    """Measure throughput with all samples queued at once.

    Each test sends the same samples, `sent_samples`, once or several times.
    """
    rounds = Rounds(OfflineTest, benches, progress)
    rates = {name: rehearsed.samples_per_s for name, rehearsed in rehearsals.items()}
    sent = sent_samples(benches[0], round(min(rates.values()) * rounds.seconds))

    def test(bench: Bench, number: int) -> OfflineTest:
        rate = rates[bench.name]
        queries = len(sent) * max(1, round(rate * rounds.seconds / len(sent)))
        rounds.begin(OFFLINE, bench, number, queries / rate)
        facts, serving = bench.test(
            f"{OFFLINE}-{number}",
            loadgen.offline(expected_per_s=rate),
            queries=queries,
            tell=progress.tell,
            indices=sent,
        )
        rates[bench.name] = facts["samples_per_s"]
        found = OfflineTest(name=bench.name, round=number, batches=serving.batches, **facts)
        if bench.name != UNPADDED:
            found.tokens, found.padded_tokens = serving.tokens, serving.padded_tokens
        return found

    return rounds.run(test)


def sent_samples(bench: Bench, count: int) -> list[int]:
    """Return about `count` samples of all lengths in proportion, at least some full batches."""
    order = by_length(bench.rows)
    wanted = min(len(order), max(count, FEWEST_BATCHES * bench.plan["batch"]))
    return sorted(order[place * len(order) // wanted] for place in range(wanted))


class ServerSearch:
    """Search for the highest rate of queries at random times whose p99 is within the bound.

    The search starts at `capacity_per_s`. `long_s` is the time of one of the longest samples alone:
    if it exceeds the bound, no rate can pass and none is tried. Rates at which the queries that p99
    needs would take more than `LONGEST_TEST` times `seconds` are not tried either.
    """

    def __init__(self, bench: Bench, capacity_per_s: float, long_s: float) -> None:
        self.bench, self.capacity_per_s, self.long_s = bench, capacity_per_s, long_s
        self.bound = bench.plan["p99_bound_s"]
        least = QUERIES / (LONGEST_TEST * bench.plan["seconds"])
        self.search = RateSearch(capacity_per_s, least=least)
        self.rates: list[Rate] = []

    @property
    def next_per_s(self) -> float | None:
        """Return the next rate to try, None at the end."""
        return self.search.rate if self.long_s <= self.bound else None

    @property
    def expected_s(self) -> float:
        """Return the expected seconds of a test."""
        return expected_seconds(self.bench, self.next_per_s or self.capacity_per_s)

    def step(self, progress: Progress) -> None:
        """Try the next rate; a disturbed test is repeated while more time may be lost."""
        target_per_s, machine = self.next_per_s, self.bench.machine
        if target_per_s is None:
            return
        if len(self.rates) >= USUAL_RATES:
            progress.expect(self.expected_s)
        progress.begin(f"{SERVER}, {self.bench.name}", self.expected_s)
        while True:
            machine.wait()
            rate = self.test(target_per_s, progress)
            if rate.foreign_cores <= MAX_FOREIGN_CORES or not machine.left_s:
                break
            machine.lose(rate.duration_s)
        progress.end()
        self.rates.append(rate)
        self.search.record(rate.valid)
        if self.next_per_s is None and len(self.rates) < USUAL_RATES:
            progress.expect((len(self.rates) - USUAL_RATES) * self.expected_s)

    def test(self, target_per_s: float, progress: Progress) -> Rate:
        """Run a test at one query rate.

        The test ends early once too many queries wait for it to become valid: at most the capacity
        times the bound of them are answered in time (twice that, for safety), and of the others
        more than p99 leaves out (1 % of all queries) are late.
        """
        plan, capacity = self.bench.plan, max(target_per_s, self.capacity_per_s)
        queries = max(QUERIES, target_per_s * plan["seconds"])
        outstanding = math.ceil(2 * capacity * self.bound + 0.01 * queries) + plan["batch"]
        settings = loadgen.server(
            target_per_s=target_per_s, p99_bound_s=self.bound, outstanding=outstanding
        )
        facts, _ = self.bench.test(
            f"{SERVER}-{target_per_s:g}",
            settings,
            queries=QUERIES,
            seconds=plan["seconds"],
            tell=progress.tell,
        )
        return Rate(**facts)

    def result(self) -> ServerTest:
        """Return the test of the record, with the highest valid rate or the reason of none."""
        one = "one image" if self.bench.name == UNPADDED else "one long sample"
        reason = f"{one} alone takes {self.long_s:.3g} s, the bound of p99 is {self.bound:g} s"
        if self.rates:
            lowest = min(rate.target_per_s for rate in self.rates)
            reason = f"p99 is over {self.bound:g} s even at {lowest:g} queries/s"
        valid = [rate for rate in self.rates if rate.valid]
        best = max(valid, key=lambda rate: rate.target_per_s, default=None)
        return ServerTest(
            name=self.bench.name,
            duration_s=sum(rate.duration_s for rate in self.rates),
            rates=self.rates,
            highest_per_s=best.target_per_s if best else None,
            issued_per_s=best.issued_per_s if best else None,
            reason=None if best else reason,
        )


def expected_seconds(bench: Bench, per_s: float) -> float:
    """Return the expected seconds of a test at a query rate."""
    seconds: float = bench.plan["seconds"]
    return max(seconds, QUERIES / per_s)


def server_tests(
    benches: Sequence[Bench],
    capacities: Mapping[str, float],
    long_s: Mapping[str, float],
    progress: Progress,
) -> list[ServerTest]:
    """Search the highest rate of each bench, one rate of each in turn."""
    searches = [
        ServerSearch(bench, capacities[bench.name], long_s[bench.name]) for bench in benches
    ]
    while unfinished := [one for one in searches if one.next_per_s is not None]:
        for search in unfinished:
            search.step(progress)
    return [search.result() for search in searches]


def measure_scenarios(benches: Sequence[Bench]) -> tuple[list[Test], dict[str, Answers]]:
    """Return the tests of all paddings, and with `offline` the answers by padding.

    Rounds go on until the gains over the padding `fixed` are known. Rehearsals without LoadGen
    come first.
    """
    scenarios = benches[0].plan["scenarios"]
    rehearsals = {bench.name: rehearse(bench, answer_all=OFFLINE in scenarios) for bench in benches}
    tests: list[Test] = []
    capacities = {name: rehearsed.samples_per_s for name, rehearsed in rehearsals.items()}
    with Progress("serving", expected_total(benches, rehearsals)) as progress:
        if SINGLE_STREAM in scenarios:
            tests += single_stream_tests(benches, rehearsals, progress)
        if OFFLINE in scenarios:
            offline = offline_tests(benches, rehearsals, progress)
            tests += offline
            for name in capacities:
                own = [test.samples_per_s for test in offline if test.name == name]
                capacities[name] = median_of(own) or capacities[name]
        if SERVER in scenarios:
            long_s = {name: rehearsed.long_s for name, rehearsed in rehearsals.items()}
            tests += server_tests(benches, capacities, long_s, progress)
    answers = {name: one.answers for name, one in rehearsals.items() if one.answers is not None}
    return tests, answers


def expected_total(benches: Sequence[Bench], rehearsals: Mapping[str, Rehearsal]) -> float:
    """Return the seconds that all tests are expected to take."""
    total = 0.0
    for bench in benches:
        rehearsed, scenarios = rehearsals[bench.name], bench.plan["scenarios"]
        if SINGLE_STREAM in scenarios:
            fewest = SAMPLES_FOR_PERCENTILE[90] * (rehearsed.short_s + rehearsed.long_s) / 2
            total += FEWEST_ROUNDS * max(round_seconds(bench), fewest)
        if OFFLINE in scenarios:
            fewest = FEWEST_BATCHES * bench.plan["batch"] / rehearsed.samples_per_s
            total += FEWEST_ROUNDS * max(round_seconds(bench), fewest)
        if SERVER in scenarios:
            total += USUAL_RATES * expected_seconds(bench, rehearsed.samples_per_s)
    return total
