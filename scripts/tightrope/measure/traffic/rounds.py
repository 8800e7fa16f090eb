"""Scenarios measured in rounds: one test of each padding per round, another one first each time."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tightrope.machine.interference import MAX_FOREIGN_CORES, window_seconds
from tightrope.measure.traffic import loadgen
from tightrope.measure.traffic.bench import Bench, Rehearsal, by_length
from tightrope.measure.traffic.padding import UNPADDED
from tightrope.measure.traffic.progress import Progress
from tightrope.records.traffic import (
    FEWEST_ROUNDS,
    OFFLINE,
    SINGLE_STREAM,
    counted_rounds,
    gain_over_fixed,
)
from tightrope.statistics import SAMPLES_FOR_PERCENTILE

Facts = dict[str, Any]

# rounds go on until the interval of each gain is at most this wide, relative to the gain, or the
# tests have taken this many times `seconds` per padding
WIDTH = 0.1
LONGEST_ROUNDS = 2
# most rounds, if other load disturbs most of them
MOST_ROUNDS = 40
# an offline test sends at least this many full batches
FEWEST_BATCHES = 8
# counters recorded for an offline test of texts
COUNTED = ("batches", "tokens", "padded_tokens")


class Rounds:
    """Rounds of one scenario over all paddings; `tests` are those run so far."""

    def __init__(self, scenario: str, benches: Sequence[Bench], progress: Progress) -> None:
        self.scenario = scenario
        self.benches = benches
        self.progress = progress
        self.machine, self.plan = benches[0].machine, benches[0].plan
        self.seconds = round_seconds(benches[0])
        self.tests: list[Facts] = []

    def run(self, test: Callable[[Bench, int], Facts]) -> list[Facts]:
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
                self.tests.append({"name": bench.name, "round": number, **one})
                left_s -= one["duration_s"]
                if one["foreign_cores"] > MAX_FOREIGN_CORES:
                    left_s += self.machine.lose(one["duration_s"])
        return self.tests

    def begin(self, bench: Bench, number: int, seconds: float) -> None:
        """Show a test that is expected to take `seconds`."""
        if number > FEWEST_ROUNDS:
            self.progress.expect(seconds)
        self.progress.begin(f"{self.scenario.replace('_', ' ')}, {bench.name}", seconds)

    def suffice(self, left_s: float) -> bool:
        """Return whether no more rounds are needed, or none are possible."""
        if len(counted_rounds(self.tests, self.scenario)) < FEWEST_ROUNDS:
            return not self.machine.left_s
        return left_s <= 0 or not self.is_wide()

    def is_wide(self) -> bool:
        """Return whether the interval of some gain is still too wide."""
        gains = [gain_over_fixed(self.tests, bench.name) for bench in self.benches]
        return any(one and one.high - one.low > WIDTH * one.value for one in gains)


def round_seconds(bench: Bench) -> float:
    """Return the length of a test in a round: `seconds` divided among the fewest rounds.

    At least as long as foreign load needs to be seen.
    """
    shortest = window_seconds(len(bench.machine.processors))
    return max(bench.plan["seconds"] / FEWEST_ROUNDS, shortest)


def single_stream_tests(
    benches: Sequence[Bench], rehearsals: Mapping[str, Rehearsal], progress: Progress
) -> list[Facts]:
    """Measure latencies of one query at a time, in batches of one."""
    rounds = Rounds(SINGLE_STREAM, benches, progress)
    per_s = {
        name: 2 / (rehearsed.short_s + rehearsed.long_s) for name, rehearsed in rehearsals.items()
    }

    def test(bench: Bench, number: int) -> Facts:
        expected = per_s[bench.name]
        queries = max(SAMPLES_FOR_PERCENTILE[90], math.ceil(rounds.seconds * expected))
        settings = loadgen.single_stream(expected_per_s=expected)
        name = f"{SINGLE_STREAM}-{number}"
        rounds.begin(bench, number, queries / expected)
        facts, _ = bench.test(name, settings, queries=queries, tell=progress.tell)
        per_s[bench.name] = 1 / facts["p50_s"]
        return {"scenario": SINGLE_STREAM, **facts}

    return rounds.run(test)


def offline_tests(
    benches: Sequence[Bench], rehearsals: Mapping[str, Rehearsal], progress: Progress
) -> list[Facts]:
    """Measure throughput with all samples queued at once.

    Each test sends the same samples, `sent_samples`, once or several times.
    """
    rounds = Rounds(OFFLINE, benches, progress)
    rates = {name: rehearsed.samples_per_s for name, rehearsed in rehearsals.items()}
    sent = sent_samples(benches[0], round(min(rates.values()) * rounds.seconds))

    def test(bench: Bench, number: int) -> Facts:
        rate = rates[bench.name]
        queries = len(sent) * max(1, round(rate * rounds.seconds / len(sent)))
        rounds.begin(bench, number, queries / rate)
        facts, serving = bench.test(
            f"{OFFLINE}-{number}",
            loadgen.offline(expected_per_s=rate),
            queries=queries,
            tell=progress.tell,
            indices=sent,
        )
        rates[bench.name] = facts["samples_per_s"]
        counted = COUNTED[:1] if bench.name == UNPADDED else COUNTED
        counts = {name: getattr(serving, name) for name in counted}
        return {"scenario": OFFLINE, **facts, **counts}

    return rounds.run(test)


def sent_samples(bench: Bench, count: int) -> list[int]:
    """Return about `count` samples of all lengths in proportion, at least some full batches."""
    order = by_length(bench.rows)
    wanted = min(len(order), max(count, FEWEST_BATCHES * bench.plan["batch"]))
    return sorted(order[place * len(order) // wanted] for place in range(wanted))
