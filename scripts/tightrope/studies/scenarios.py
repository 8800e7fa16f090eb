"""The scenarios of LoadGen over all paddings: in rounds, or as a search of the highest rate."""

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

from tightrope.jobs.child import Child
from tightrope.jobs.progress import ProgressBar
from tightrope.machine.interference import MAX_FOREIGN_CORES, window_seconds
from tightrope.statistics import SAMPLES_FOR_PERCENTILE
from tightrope.studies.study import Bench
from tightrope.studies.traffic import (
    FEWEST_ROUNDS,
    Call,
    LoadGenTest,
    Offline,
    Rehearsal,
    Sent,
    Server,
    Settings,
    SingleStream,
    gain_over_fixed,
    in_rounds,
)

NANOSECONDS = 1e9
# rounds go on until the interval of each gain is at most this wide, relative to the gain, or the
# tests have taken this many times `seconds` per padding
WIDTH = 0.1
LONGEST_ROUNDS = 2
# most rounds, if other load disturbs most of them
MOST_ROUNDS = 40
# an offline test sends at least this many full batches
FEWEST_BATCHES = 8
# of the search of a rate: how many are tried at most and usually, and how near they get
RATES, USUAL_RATES = 9, 6
BRACKET = 1.05
STEP_UP = 1.5
QUERIES = SAMPLES_FOR_PERCENTILE[99]
# a rate is not tried if the queries that p99 needs would take this many times `seconds`
LONGEST_TEST = 12


class Scenarios:
    """The tests of all paddings, which one loaded engine serves in `worker`, see `LoadGen`.

    By padding, `per_s` is the throughput, `alone_s` are the seconds of one sample alone. They come
    from the rehearsals, then from the last test, and say how many queries fill the time.
    """

    def __init__(
        self,
        bench: Bench,
        worker: Child,
        settings: Settings,
        sent: Sent,
        rehearsals: Sequence[Rehearsal],
    ) -> None:
        self.bench, self.worker, self.settings, self.sent = bench, worker, settings, sent
        self.paddings = [one.padding for one in rehearsals]
        self.long_s = {one.padding: one.long_s for one in rehearsals}
        self.per_s = {one.padding: one.samples_per_s for one in rehearsals}
        self.alone_s = {one.padding: (one.short_s + one.long_s) / 2 for one in rehearsals}
        # at least as long as foreign load needs to be seen
        shortest = window_seconds(len(bench.machine.processors))
        self.round_s = max(settings.seconds / FEWEST_ROUNDS, shortest)
        usual = {"single_stream": FEWEST_ROUNDS, "offline": FEWEST_ROUNDS, "server": USUAL_RATES}
        tests = sum(usual[scenario] for scenario in settings.scenarios)
        self.bar = ProgressBar("serving", tests * len(rehearsals))

    def run(self) -> Iterator[Call]:
        """Yield the tests of all scenarios."""
        alone = self.in_rounds(SingleStream, self.single_stream)
        known = {"single_stream": alone, "offline": self.offline(), "server": self.server()}
        with self.bar:
            yield from chain(
                *(one for name, one in known.items() if name in self.settings.scenarios)
            )

    def ask(self, kind: type[Any], number: int, padding: str, name: str, *arguments: Any) -> Any:
        """Return a test of this kind; its logs get the name, see `LoadGen.test` for the rest."""
        scenario, _, _ = name.partition("-")
        self.bar.bar.set_description_str(f"{scenario.replace('_', ' ')}, {padding}")
        facts = self.worker.ask("test", name, padding, kind.__name__, *arguments)
        return kind(padding=padding, round=number, **facts)

    def in_rounds(self, kind: type[Any], test: Callable[[str, int], LoadGenTest]) -> Iterator[Any]:
        """Yield rounds of `test(padding, round)` until they suffice."""
        machine, paddings, tests = self.bench.machine, self.paddings, list[LoadGenTest]()
        left_s = LONGEST_ROUNDS * self.settings.seconds * len(paddings)
        for number in range(1, MOST_ROUNDS + 1):
            first = (number - 1) % len(paddings)
            for padding in (*paddings[first:], *paddings[:first]):
                machine.wait()
                one = test(padding, number)
                yield one
                tests.append(one)
                self.bar.add(number <= FEWEST_ROUNDS)
                left_s -= one.duration_s
                if one.foreign_cores > MAX_FOREIGN_CORES:
                    left_s += machine.lose(one.duration_s)
            if number < FEWEST_ROUNDS:
                continue
            counted = in_rounds(tests, kind)
            gains = [gain_over_fixed(counted, one) for one in paddings if kind is Offline]
            wide = any(one and one.high - one.low > WIDTH * one.value for one in gains)
            if (left_s <= 0 or not wide) if counted.tests else not machine.left_s:
                return

    def single_stream(self, padding: str, number: int) -> SingleStream:
        """Measure latencies of one query at a time.

        LoadGen sends enough queries if its expected latency is no longer than the actual one.
        """
        expected_s = self.alone_s[padding]
        queries = max(SAMPLES_FOR_PERCENTILE[90], math.ceil(self.round_s / expected_s))
        settings = {
            "single_stream_expected_latency_ns": round(NANOSECONDS * expected_s),
            "single_stream_target_latency_percentile": 0.9,
            "min_query_count": queries,
        }
        found = self.ask(SingleStream, number, padding, f"single_stream-{number}", settings)
        self.alone_s[padding] = found.p50_s
        return found

    def offline(self) -> Iterator[Offline]:
        """Yield throughputs with all samples queued at once; `per_s` are then their medians.

        Each test sends the same samples, once or several times.
        """
        least = FEWEST_BATCHES * self.settings.batch
        count = round(min(self.per_s.values()) * self.round_s)
        indices = in_proportion(self.sent, max(count, least))

        def test(padding: str, number: int) -> Offline:
            rate = self.per_s[padding]
            times = max(1, round(rate * self.round_s / len(indices)))
            settings = {"offline_expected_qps": rate, "min_query_count": len(indices) * times}
            found = self.ask(Offline, number, padding, f"offline-{number}", settings, indices)
            self.per_s[padding] = found.samples_per_s
            return found

        tests = []
        for one in self.in_rounds(Offline, test):
            tests.append(one)
            yield one
        for padding in self.paddings:
            own = [one.samples_per_s for one in tests if one.padding == padding]
            self.per_s[padding] = statistics.median(own)

    def server(self) -> Iterator[Server]:
        """Search the highest rates whose p99 is within the bound, one rate of each in turn.

        A search starts at the throughput. Where one of the longest samples alone takes longer than
        the bound, no rate can pass and none is tried; nor are those at which the queries that p99
        needs would take more than `LONGEST_TEST` times `seconds`. A disturbed test is repeated
        while more time may be lost.
        """
        least = QUERIES / (LONGEST_TEST * self.settings.seconds)
        within = [one for one in self.paddings if self.long_s[one] <= self.settings.p99_bound_s]
        tried: dict[str, list[Server]] = {padding: [] for padding in within}
        while tried:
            for padding, tests in [*tried.items()]:
                passed = [(one.target_per_s, one.valid) for one in tests]
                rate = next_rate(passed, self.per_s[padding], least)
                if rate is None:
                    del tried[padding]
                    continue
                self.bench.machine.wait()
                once = partial(self.at_rate, padding, len(tests) + 1, rate)
                *_, test = self.bench.quietly(once)
                yield test
                tests.append(test)
                self.bar.add(len(tests) <= USUAL_RATES)

    def at_rate(self, padding: str, number: int, per_s: float) -> Server:
        """Run a test at one query rate.

        The test ends early, and is invalid, once too many queries wait for it to become valid: at
        most the capacity times the bound of them are answered in time (twice that, for safety), and
        of the others more than p99 leaves out (1 % of all queries) are late.
        """
        seconds, bound_s = self.settings.seconds, self.settings.p99_bound_s
        queries, capacity = max(QUERIES, per_s * seconds), max(per_s, self.per_s[padding])
        outstanding = math.ceil(2 * capacity * bound_s + 0.01 * queries) + self.settings.batch
        settings = {
            "server_target_qps": per_s,
            "server_target_latency_ns": round(NANOSECONDS * bound_s),
            "server_target_latency_percentile": 0.99,
            "server_max_async_queries": outstanding,
            "min_query_count": QUERIES,
            "min_duration_ms": round(1000 * seconds),
        }
        return self.ask(Server, number, padding, f"server-{per_s:g}", settings)


def in_proportion(sent: Sent, count: int) -> list[int]:
    """Return about `count` of the samples, of all lengths in proportion."""
    lengths = sent.lengths or [0] * sent.samples
    order = sorted(range(sent.samples), key=lengths.__getitem__)
    wanted = min(len(order), count)
    return sorted(order[place * len(order) // wanted] for place in range(wanted))


def next_rate(
    tried: Sequence[tuple[float, bool]], start: float, least: float = 0.0
) -> float | None:
    """Return the next rate of a search after those tried, each with whether it passed.

    From `start`, the rate is multiplied by 1.5 while rates pass, or halved while they fail, but not
    below `least`. Then it is the geometric mean of the highest rate that passed and the lowest that
    failed. None once these are within 5 %, or after 9 rates. Rates have three significant digits.
    """
    low = max((rate for rate, passed in tried if passed), default=None)
    high = min((rate for rate, passed in tried if not passed), default=None)
    if low and high:
        rate = math.sqrt(low * high)
    else:
        rate = low * STEP_UP if low else high / 2 if high else start
    narrow = low and high and high <= low * BRACKET
    ended = narrow or len(tried) == RATES or (tried and rate < least)
    return None if ended else float(f"{rate:.3g}")
