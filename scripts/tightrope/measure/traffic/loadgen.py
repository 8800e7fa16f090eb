"""Run one test of MLCommons LoadGen on a serving engine, and read the results from its logs."""

import json
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import mlperf_loadgen

from tightrope.artifacts.files import storage_errors
from tightrope.measure.traffic.serving import Serving

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


def single_stream(*, expected_per_s: float) -> Facts:
    """Return settings for single queries; `expected_per_s` must be at least the actual rate."""
    return {
        "scenario": mlperf_loadgen.TestScenario.SingleStream,
        "single_stream_expected_latency_ns": round(NANOSECONDS / expected_per_s),
        "single_stream_target_latency_percentile": 0.9,
    }


def offline(*, expected_per_s: float) -> Facts:
    """Return settings for one query with as many samples as fill the time at `expected_per_s`."""
    return {
        "scenario": mlperf_loadgen.TestScenario.Offline,
        "offline_expected_qps": expected_per_s,
    }


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
    return {"valid": log["result_validity"] == "VALID", **NUMBERS[log["effective_scenario"]](log)}


def percentile_s(log: Facts, percent: int) -> float:
    """Return LoadGen's latency percentile in seconds; the sample count may not support it."""
    return log[f"result_{percent}.00_percentile_latency_ns"] / NANOSECONDS


def single_stream_numbers(log: Facts) -> Facts:
    """Return the latency percentiles of SingleStream."""
    percentiles = {f"p{percent}_s": percentile_s(log, percent) for percent in (50, 90, 99)}
    return {"queries": log["result_query_count"], **percentiles}


def offline_numbers(log: Facts) -> Facts:
    """Return the throughput of Offline."""
    return {
        "samples": log["generated_samples_per_query"],
        "samples_per_s": log["result_samples_per_second"],
    }


def server_numbers(log: Facts) -> Facts:
    """Return the target and the issued rate of Server, p99, and the queries over the bound."""
    return {
        "target_per_s": log["effective_target_qps"],
        "issued_per_s": log["result_scheduled_samples_per_sec"],
        "p99_s": percentile_s(log, 99),
        "queries": log["result_query_count"],
        "late": log["result_overlatency_query_count"],
    }


NUMBERS: dict[str, Callable[[Facts], Facts]] = {
    "SingleStream": single_stream_numbers,
    "Offline": offline_numbers,
    "Server": server_numbers,
}
