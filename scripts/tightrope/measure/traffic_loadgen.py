"""Tests of MLCommons LoadGen on a serving engine, and rehearsals without it."""

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import mlperf_loadgen
from tqdm import tqdm

from tightrope.artifacts.files import storage_errors
from tightrope.inputs.arrays import Arrays, length
from tightrope.machine.foreign_load import own_seconds
from tightrope.machine.interference import Windows
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.traffic_serving import Query, Serving
from tightrope.records.traffic import Answers

Facts = dict[str, Any]

DETAIL = "mlperf_log_detail.txt"
PREFIX = ":::MLLOG "
NANOSECONDS = 1e9
# seeds of mlperf.conf in LoadGen 6.0.17, the same for every model and scenario
SEEDS = {
    "qsl_rng_seed": 2085463073848966840,
    "sample_index_rng_seed": 2747215439041700203,
    "schedule_rng_seed": 16159082839903944936,
}
REHEARSAL_BATCHES = 4
# quantile of a long sample: the longer 2 % are more than the 1 % that p99 leaves out
LONG_SHARE = 0.98


def single_stream(*, expected_per_s: float) -> Facts:
    """Return settings for single queries; `expected_per_s` must be at least the actual rate."""
    return {
        "scenario": mlperf_loadgen.TestScenario.SingleStream,
        "single_stream_expected_latency_ns": round(NANOSECONDS / expected_per_s),
        "single_stream_target_latency_percentile": 0.9,
    }


def offline(*, expected_per_s: float) -> Facts:
    """Return settings for one query with as many samples as fill the time at `expected_per_s`."""
    return {"scenario": mlperf_loadgen.TestScenario.Offline, "offline_expected_qps": expected_per_s}


def server(*, target_per_s: float, p99_bound_s: float, outstanding: int) -> Facts:
    """Return settings for queries at random times (Poisson), on average `target_per_s`.

    The test ends early and is invalid once more than `outstanding` queries wait.
    """
    return {
        "scenario": mlperf_loadgen.TestScenario.Server,
        "server_target_qps": target_per_s,
        "server_target_latency_ns": round(p99_bound_s * NANOSECONDS),
        "server_target_latency_percentile": 0.99,
        "server_max_async_queries": outstanding,
    }


def run_test(
    serving: Serving,
    scenario: Facts,
    folder: Path,
    *,
    seconds: float,
    queries: int,
    tell: Callable[[], None],
) -> Facts:
    """Run one test in the mode PerformanceOnly; return `numbers` of its logs.

    `scenario` comes from one of the functions above. The test has at least `seconds` and `queries`
    (Offline: samples). It creates `folder` for its logs. `serving` runs in this thread, LoadGen in
    another; `tell` is called after each batch. Exceptions of the engine are raised unchanged;
    RuntimeError where LoadGen wrote no result.
    """
    settings = mlperf_loadgen.TestSettings()
    fixed = {
        "mode": mlperf_loadgen.TestMode.PerformanceOnly,
        "min_duration_ms": round(1000 * seconds),
        "min_query_count": queries,
    }
    for name, value in {**fixed, **SEEDS, **scenario}.items():
        setattr(settings, name, value)
    logs = mlperf_loadgen.LogSettings()
    logs.enable_trace = False
    logs.log_output.outdir = str(folder)
    with storage_errors(folder):
        folder.mkdir(parents=True)
        converse(serving, settings, logs, tell)
        return numbers(read_log(folder / DETAIL))


def converse(serving: Serving, settings: Any, logs: Any, tell: Callable[[], None]) -> None:
    """Run LoadGen in a thread and answer its queries with `serving` until the test ends.

    LoadGen's callback is a C method that cannot fail (`SimpleQueue.put`): a Python exception in a
    callback would abort the process.
    """
    size = len(serving.rows)
    library = mlperf_loadgen.ConstructQSL(size, size, ignore, ignore)
    system = mlperf_loadgen.ConstructSUT(serving.inbox.put, ignore)
    failed: list[BaseException] = []

    def ask() -> None:
        try:
            # the last argument is a file that would override the settings: no file
            mlperf_loadgen.StartTestWithLogSettings(system, library, settings, logs, "")
        except BaseException as error:
            failed.append(error)
        finally:
            serving.inbox.put(None)

    def completed(ids: list[int]) -> None:
        complete(ids)
        tell()

    asking = Thread(target=ask, daemon=True)
    asking.start()
    try:
        serving.work(completed)
    finally:
        asking.join()
        mlperf_loadgen.DestroySUT(system)
        mlperf_loadgen.DestroyQSL(library)
    if failed:
        raise failed[0]


def ignore(*_: Any) -> None:
    """Do nothing: LoadGen's callback to load or unload samples, or to flush queries."""


def complete(ids: list[int]) -> None:
    """Report these samples to LoadGen as completed."""
    responses = [mlperf_loadgen.QuerySampleResponse(one, 0, 0) for one in ids]
    mlperf_loadgen.QuerySamplesComplete(responses)


def read_log(path: Path) -> Facts:
    """Return the last value per key of LoadGen's detailed log.

    Raises RuntimeError for a log without a result.
    """
    lines = path.read_text().splitlines() if path.is_file() else []
    entries = [json.loads(line.removeprefix(PREFIX)) for line in lines if line.startswith(PREFIX)]
    log = {entry["key"]: entry["value"] for entry in entries}
    if "result_validity" not in log:
        raise RuntimeError(f"{path}: LoadGen wrote no result")
    return log


def numbers(log: Facts) -> Facts:
    """Return `valid`, LoadGen's verdict, and its results for the scenario, times in seconds."""
    valid = log["result_validity"] == "VALID"
    if log["effective_scenario"] == "Offline":
        samples, rate = "generated_samples_per_query", "result_samples_per_second"
        return {"valid": valid, "samples": log[samples], "samples_per_s": log[rate]}
    facts: Facts = {"valid": valid, "queries": log["result_query_count"]}
    if log["effective_scenario"] == "SingleStream":
        return facts | {f"p{percent}_s": percentile_s(log, percent) for percent in (50, 90, 99)}
    return facts | {
        "target_per_s": log["effective_target_qps"],
        "issued_per_s": log["result_scheduled_samples_per_sec"],
        "p99_s": percentile_s(log, 99),
        # over the bound
        "late": log["result_overlatency_query_count"],
    }


def percentile_s(log: Facts, percent: int) -> float:
    """Return LoadGen's latency percentile in seconds; the sample count may not support it."""
    return log[f"result_{percent}.00_percentile_latency_ns"] / NANOSECONDS


class Rehearsal(NamedTuple):
    """What serving without LoadGen shows, to size the tests.

    Seconds of the shortest and of one of the longest samples alone, samples per second, and the
    answers to all samples (None unless they were requested).
    """

    short_s: float
    long_s: float
    samples_per_s: float
    answers: Answers | None


@dataclass(frozen=True)
class Bench:
    """An engine, samples with the padding of that `name`, and a folder for LoadGen's logs.

    `padded` are the lengths of the samples with it. `machine` holds the time that may be lost to
    other load.
    """

    run: Callable[[Arrays], Any]
    rows: list[Arrays]
    padded: list[int | None]
    plan: dict[str, Any]
    classes: int
    folder: Path
    name: str
    machine: QuietMachine

    def serving(self, indices: Sequence[int] | None = None) -> Serving:
        """Return the engine as a new server of these samples, None: of all."""
        among = range(len(self.rows)) if indices is None else indices
        rows, padded = [self.rows[one] for one in among], [self.padded[one] for one in among]
        return Serving(self.run, rows, padded, batch=self.plan["batch"], classes=self.classes)

    def served(self, indices: Sequence[int], *, show: bool = False) -> tuple[Serving, float]:
        """Serve these samples, all queued at once, without LoadGen; return also the seconds.

        With `show` the job's log has a progress bar.
        """
        serving = self.serving()
        serving.inbox.put([Query(id=0, index=index) for index in indices])
        serving.inbox.put(None)
        what = f"answering, {self.name}"
        with tqdm(total=len(indices), desc=what, unit="sample", disable=not show) as bar:

            def complete(ids: list[int]) -> None:
                bar.update(len(ids))

            began = time.perf_counter()
            serving.work(complete)
            return serving, time.perf_counter() - began

    def test(
        self,
        name: str,
        settings: Facts,
        *,
        queries: int,
        tell: Callable[[], None],
        seconds: float = 0.0,
        indices: Sequence[int] | None = None,
    ) -> tuple[Facts, Serving]:
        """Run one test of these samples (None: of all); return LoadGen's results and the server.

        The test has at least `queries` and `seconds`. Replaces logs of that name. `tell` is called
        after each batch. `duration_s` is the time of the test, `foreign_cores` are the cores of
        the processors that other programs used meanwhile.
        """
        folder = self.folder / f"{self.name}-{name}"
        remove_folder(folder)
        serving = self.serving(indices)
        windows, began = Windows(self.machine.processors, own_seconds), time.monotonic()
        numbers = run_test(serving, settings, folder, seconds=seconds, queries=queries, tell=tell)
        foreign = windows.close()
        spent = time.monotonic() - began
        return {"duration_s": spent, **numbers, "foreign_cores": foreign}, serving


def remove_folder(folder: Path) -> None:
    """Remove the folder and its contents, if it exists."""
    with storage_errors(folder):
        if folder.exists():
            shutil.rmtree(folder)


def rehearse(bench: Bench, *, answer_all: bool) -> Rehearsal:
    """Serve samples of all lengths twice, because the first call of each shape takes longer.

    With `answer_all`, all samples are then served once, for their answers.
    """
    order = by_length(bench.rows)
    # in the order of the split, so that batches hold short and long samples
    some = sorted(order[:: max(1, len(order) // (REHEARSAL_BATCHES * bench.plan["batch"]))])
    long = order[int(LONG_SHARE * (len(order) - 1))]
    for _ in range(2):
        (_, some_s), (_, short_s), (_, long_s) = map(bench.served, (some, order[:1], [long]))
    if not answer_all:
        return Rehearsal(short_s, long_s, len(some) / some_s, None)
    serving, all_s = bench.served(range(len(bench.rows)), show=True)
    answers = Answers(predictions=serving.predictions, margins=serving.margins)
    return Rehearsal(short_s, long_s, len(bench.rows) / all_s, answers)


def by_length(rows: Sequence[Arrays]) -> list[int]:
    """Return the indices of the rows, those of the shortest first."""
    return sorted(range(len(rows)), key=lambda index: length(rows[index]))
