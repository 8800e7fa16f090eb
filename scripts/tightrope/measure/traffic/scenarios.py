"""Traffic scenarios: tests of LoadGen on one engine with one padding."""

import math
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tightrope.artifacts.files import storage_errors
from tightrope.inputs.arrays import Arrays, length
from tightrope.machine.foreign_load import own_seconds
from tightrope.machine.interference import MAX_FOREIGN_CORES, Windows
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.traffic import loadgen
from tightrope.measure.traffic.padding import UNPADDED
from tightrope.measure.traffic.rate_search import highest_rate
from tightrope.measure.traffic.serving import Query, Serving
from tightrope.statistics import SAMPLES_FOR_PERCENTILE

Facts = dict[str, Any]

REHEARSAL_BATCHES = 4
# maximum number of runs of a test: a test that ends too early is repeated with the rate that it
# measured, which for a very short test is too low again
ATTEMPTS = 6
# a rate is not tried if the queries that p99 needs would take this many times `seconds`
LONGEST_TEST = 12
# quantile of a long sample: the longer 2 % are more than the 1 % that p99 leaves out
LONG_SHARE = 0.98
# counters recorded for an offline test of texts
COUNTED = ("batches", "tokens", "padded_tokens")


@dataclass(frozen=True)
class Bench:
    """Engine, samples with one padding, and the folder for LoadGen's logs.

    `machine` holds the time that may be lost to other load.
    """

    run: Callable[[Arrays], Any]
    rows: list[Arrays]
    padded: list[int | None]
    plan: dict[str, Any]
    classes: int
    folder: Path
    padding: str
    machine: QuietMachine

    def serving(self) -> Serving:
        """Return the engine as a new server for one test."""
        return Serving(
            self.run, self.rows, self.padded, batch=self.plan["batch"], classes=self.classes
        )

    def seconds(self, indices: list[int]) -> float:
        """Return the seconds for these samples, all queued at once, without LoadGen."""
        serving = self.serving()
        serving.inbox.put([Query(id=0, index=index) for index in indices])
        serving.inbox.put(None)
        began = time.perf_counter()
        serving.work(lambda _: None)
        return time.perf_counter() - began

    def test(self, name: str, settings: Facts, queries: int) -> tuple[Facts, Serving]:
        """Run one test; return LoadGen's results and the `Serving`. Replaces logs of that name.

        `foreign_cores` are the cores of the processors that other programs used meanwhile. A test
        that they disturbed is repeated while more time may be lost to other load.
        """
        folder, seconds = self.folder / f"{self.padding}-{name}", self.plan["seconds"]
        while True:
            self.machine.wait()
            windows, serving = Windows(self.machine.processors, own_seconds), self.serving()
            remove_folder(folder)
            numbers = loadgen.run_test(serving, settings, folder, seconds=seconds, queries=queries)
            began, foreign = windows.began[0], windows.close()
            if foreign <= MAX_FOREIGN_CORES or not self.machine.left_s:
                return {**numbers, "foreign_cores": foreign}, serving
            self.machine.lose(time.monotonic() - began)


def remove_folder(folder: Path) -> None:
    """Remove the folder and its contents, if it exists."""
    with storage_errors(folder):
        if folder.exists():
            shutil.rmtree(folder)


def measure_padding(bench: Bench) -> tuple[list[Facts], Facts]:
    """Return the tests of one padding, and the answers of its offline test.

    Rehearsals without LoadGen come first. The scenario server requires the offline test.
    """
    scenarios = bench.plan["scenarios"]
    order = sorted(range(len(bench.rows)), key=lambda index: length(bench.rows[index]))
    some = order[:: max(1, len(order) // (REHEARSAL_BATCHES * bench.plan["batch"]))]
    for _ in range(2):  # the first call of each shape takes longer
        some_s = bench.seconds(some)
        short_s = bench.seconds(order[:1])
        long_s = bench.seconds([order[int(LONG_SHARE * (len(order) - 1))]])
    tests: list[Facts] = []
    answers: Facts = {}
    if "single_stream" in scenarios:
        tests.append(timed(single_stream, bench, 2 / short_s))
    if "offline" in scenarios or "server" in scenarios:
        tests.append(timed(offline, bench, len(some) / some_s, answers))
    if "server" in scenarios:
        tests.append(timed(server, bench, tests[-1]["samples_per_s"], long_s))
    return tests, answers


def timed(scenario: Callable[..., Facts], bench: Bench, *arguments: Any) -> Facts:
    """Run the scenario; return its results with padding, name and duration."""
    began = time.perf_counter()
    facts = scenario(bench, *arguments)
    spent = time.perf_counter() - began
    name = scenario.__name__
    return {"padding": bench.padding, "scenario": name, "duration_s": spent, **facts}


def single_stream(bench: Bench, expected_per_s: float) -> Facts:
    """Measure latencies of one query at a time, in batches of one."""
    return repeated(
        "single_stream",
        lambda rate: loadgen.single_stream(expected_per_s=rate),
        expected_per_s,
        lambda numbers: 2 / numbers["p50_s"],
        bench=bench,
        queries=SAMPLES_FOR_PERCENTILE[90],
    )[0]


def repeated(
    name: str,
    settings: Callable[[float], Facts],
    expected_per_s: float,
    came_per_s: Callable[[Facts], float],
    *,
    bench: Bench,
    queries: int,
) -> tuple[Facts, Serving]:
    """Run a test with an expected rate, from which LoadGen computes the number of queries.

    A rate that is too low makes the test too short; it is then repeated with the measured rate.
    """
    for _ in range(ATTEMPTS):
        numbers, serving = bench.test(name, settings(expected_per_s), queries)
        if numbers["valid"]:
            break
        expected_per_s = came_per_s(numbers)
    return numbers, serving


def offline(bench: Bench, expected_per_s: float, answers: Facts) -> Facts:
    """Measure throughput with all samples queued at once; fills in `answers`."""
    numbers, serving = repeated(
        "offline",
        lambda rate: loadgen.offline(expected_per_s=rate),
        expected_per_s,
        lambda numbers: 1.2 * numbers["samples_per_s"],
        bench=bench,
        queries=len(bench.rows),
    )
    answers.update(predictions=serving.predictions, margins=serving.margins)
    counted = ("batches",) if bench.padding == UNPADDED else COUNTED
    return {**numbers, **{name: getattr(serving, name) for name in counted}}


def server(bench: Bench, capacity_per_s: float, long_s: float) -> Facts:
    """Search for the highest rate of queries at random times whose p99 is within the bound.

    The search starts at `capacity_per_s`. `long_s` is the time of one of the longest samples alone:
    if it exceeds the bound, no rate can pass and none is tried. Rates at which the queries that p99
    needs would take more than `LONGEST_TEST` times `seconds` are not tried either.
    """
    bound, longest_s = bench.plan["p99_bound_s"], LONGEST_TEST * bench.plan["seconds"]
    rates: list[Facts] = []

    def passes(target_per_s: float) -> bool:
        rates.append(server_test(bench, target_per_s, max(target_per_s, capacity_per_s)))
        return rates[-1]["valid"]

    one = "one image" if bench.padding == UNPADDED else "one long sample"
    reason = f"{one} alone takes {long_s:.3g} s, the bound of p99 is {bound:g} s"
    if long_s <= bound:
        least = SAMPLES_FOR_PERCENTILE[99] / longest_s
        highest_rate(passes, capacity_per_s, least=least)
        lowest = min(rate["target_per_s"] for rate in rates)
        reason = f"p99 is over {bound:g} s even at {lowest:g} queries/s"
    best = max((rate for rate in rates if rate["valid"]), key=by_target, default=None)
    return {
        "rates": rates,
        "highest_per_s": best and best["target_per_s"],
        "issued_per_s": best and best["issued_per_s"],
        "reason": None if best else reason,
    }


def by_target(rate: Facts) -> float:
    """Return the target rate of a test."""
    return rate["target_per_s"]


def server_test(bench: Bench, target_per_s: float, capacity_per_s: float) -> Facts:
    """Run a test at one query rate; return LoadGen's results.

    The test ends early once too many queries wait for it to become valid: at most
    `capacity_per_s` times the bound of them are answered in time (twice that, for safety), and of
    the others more than p99 leaves out (1 % of all queries) are late.
    """
    bound, least = bench.plan["p99_bound_s"], SAMPLES_FOR_PERCENTILE[99]
    queries = max(least, target_per_s * bench.plan["seconds"])
    outstanding = math.ceil(2 * capacity_per_s * bound + 0.01 * queries) + bench.plan["batch"]
    settings = loadgen.server(target_per_s=target_per_s, p99_bound_s=bound, outstanding=outstanding)
    return bench.test(f"server-{target_per_s:g}", settings, least)[0]
