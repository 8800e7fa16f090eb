"""Scenario server: the highest query rate of each bench, with the searches in alternation."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.measure.traffic import loadgen
from tightrope.measure.traffic.bench import Bench
from tightrope.measure.traffic.padding import UNPADDED
from tightrope.measure.traffic.progress import Progress
from tightrope.measure.traffic.rate_search import RateSearch
from tightrope.statistics import SAMPLES_FOR_PERCENTILE

Facts = dict[str, Any]

SERVER = "server"
QUERIES = SAMPLES_FOR_PERCENTILE[99]
# a rate is not tried if the queries that p99 needs would take this many times `seconds`
LONGEST_TEST = 12
# rates that a search usually tries
USUAL_RATES = 6


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
        self.rates: list[Facts] = []

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
            if rate["foreign_cores"] <= MAX_FOREIGN_CORES or not machine.left_s:
                break
            machine.lose(rate["duration_s"])
        progress.end()
        self.rates.append(rate)
        self.search.record(rate["valid"])
        if self.next_per_s is None and len(self.rates) < USUAL_RATES:
            progress.expect((len(self.rates) - USUAL_RATES) * self.expected_s)

    def test(self, target_per_s: float, progress: Progress) -> Facts:
        """Run a test at one query rate; return LoadGen's results.

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
        return self.bench.test(
            f"{SERVER}-{target_per_s:g}",
            settings,
            queries=QUERIES,
            seconds=plan["seconds"],
            tell=progress.tell,
        )[0]

    def result(self) -> Facts:
        """Return the test of the record, with the highest valid rate or the reason of none."""
        one = "one image" if self.bench.name == UNPADDED else "one long sample"
        reason = f"{one} alone takes {self.long_s:.3g} s, the bound of p99 is {self.bound:g} s"
        if self.rates:
            lowest = min(rate["target_per_s"] for rate in self.rates)
            reason = f"p99 is over {self.bound:g} s even at {lowest:g} queries/s"
        valid = [rate for rate in self.rates if rate["valid"]]
        best = max(valid, key=lambda rate: rate["target_per_s"], default=None)
        return {
            "name": self.bench.name,
            "scenario": SERVER,
            "duration_s": sum(rate["duration_s"] for rate in self.rates),
            "rates": self.rates,
            "highest_per_s": best and best["target_per_s"],
            "issued_per_s": best and best["issued_per_s"],
            "reason": None if best else reason,
        }


def expected_seconds(bench: Bench, per_s: float) -> float:
    """Return the expected seconds of a test at a query rate."""
    seconds: float = bench.plan["seconds"]
    return max(seconds, QUERIES / per_s)


def server_tests(
    benches: Sequence[Bench],
    capacities: Mapping[str, float],
    long_s: Mapping[str, float],
    progress: Progress,
) -> list[Facts]:
    """Search the highest rate of each bench, one rate of each in turn."""
    searches = [
        ServerSearch(bench, capacities[bench.name], long_s[bench.name]) for bench in benches
    ]
    while unfinished := [one for one in searches if one.next_per_s is not None]:
        for search in unfinished:
            search.step(progress)
    return [search.result() for search in searches]
