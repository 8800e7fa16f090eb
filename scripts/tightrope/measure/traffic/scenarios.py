"""All tests of LoadGen: rehearsals, then each scenario over all paddings."""

from collections.abc import Mapping, Sequence
from typing import Any

from tightrope.measure.traffic.bench import Bench, Rehearsal, rehearse
from tightrope.measure.traffic.progress import Progress
from tightrope.measure.traffic.rounds import (
    FEWEST_BATCHES,
    offline_tests,
    round_seconds,
    single_stream_tests,
)
from tightrope.measure.traffic.server import SERVER, USUAL_RATES, expected_seconds, server_tests
from tightrope.records.traffic import FEWEST_ROUNDS, OFFLINE, SINGLE_STREAM, median_of
from tightrope.statistics import SAMPLES_FOR_PERCENTILE

Facts = dict[str, Any]


def measure_scenarios(benches: Sequence[Bench]) -> tuple[list[Facts], dict[str, Facts]]:
    """Return the tests of all paddings, and with `offline` the answers by padding.

    Rounds go on until the gains over the padding `fixed` are known. Rehearsals without LoadGen
    come first.
    """
    scenarios = benches[0].plan["scenarios"]
    rehearsals = {bench.name: rehearse(bench, answer_all=OFFLINE in scenarios) for bench in benches}
    progress = Progress(expected_total(benches, rehearsals))
    tests: list[Facts] = []
    capacities = {name: rehearsed.samples_per_s for name, rehearsed in rehearsals.items()}
    if SINGLE_STREAM in scenarios:
        tests += single_stream_tests(benches, rehearsals, progress)
    if OFFLINE in scenarios:
        offline = offline_tests(benches, rehearsals, progress)
        tests += offline
        for name in capacities:
            own = [test for test in offline if test["name"] == name]
            capacities[name] = median_of(own, "samples_per_s") or capacities[name]
    if SERVER in scenarios:
        long_s = {name: rehearsed.long_s for name, rehearsed in rehearsals.items()}
        tests += server_tests(benches, capacities, long_s, progress)
    progress.close()
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
