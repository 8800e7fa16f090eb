"""One test of MLCommons LoadGen around a serving engine; its numbers come from its own logs."""

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
# those of the mlperf.conf inside LoadGen 6.0.17, for every model and scenario
SEEDS = {
    "qsl_rng_seed": 2085463073848966840,
    "sample_index_rng_seed": 2747215439041700203,
    "schedule_rng_seed": 16159082839903944936,
}


def single_stream(*, expected_per_s: float) -> Facts:
    """Settings: one query after the other; `expected_per_s` is to be no less than comes."""
    return {
        "scenario": mlperf_loadgen.TestScenario.SingleStream,
        "single_stream_expected_latency_ns": round(NANOSECONDS / expected_per_s),
        "single_stream_target_latency_percentile": 0.9,
    }


def offline(*, expected_per_s: float) -> Facts:
    """Settings: all samples in one query, as many as fill the time at `expected_per_s`."""
    return {
        "scenario": mlperf_loadgen.TestScenario.Offline,
        "offline_expected_qps": expected_per_s,
    }


def server(*, target_per_s: float, p99_bound_s: float, outstanding: int) -> Facts:
    """Settings: queries at random times (Poisson), so many a second on average.

    The test ends early, and is invalid, once more than `outstanding` queries wait.
    """
    return {
        "scenario": mlperf_loadgen.TestScenario.Server,
        "server_target_qps": target_per_s,
        "server_target_latency_ns": round(p99_bound_s * NANOSECONDS),
        "server_target_latency_percentile": 0.99,
        "server_max_async_queries": outstanding,
    }


def run_test(
    serving: Serving, scenario: Facts, folder: Path, *, seconds: float, queries: int
) -> Facts:
    """Run one test in the mode PerformanceOnly: what `numbers` says of its logs.

    `scenario` comes from one of the functions above. The test has at least so many `seconds`
    and `queries` (Offline: samples); its logs lie in `folder`, which is made. `serving` works in
    this thread, LoadGen in another. Raises what the engine raised, and RuntimeError where
    LoadGen wrote no result.
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
        converse(serving, settings, logs)
        return numbers(read_log(folder / DETAIL))


def converse(serving: Serving, settings: Any, logs: Any) -> None:
    """Let LoadGen ask and `serving` answer until the test is over.

    LoadGen's callback is a method in C that cannot fail: an exception of Python inside of one
    would abort the process.
    """
    size = len(serving.rows)
    library = mlperf_loadgen.ConstructQSL(size, size, ignore, ignore)
    system = mlperf_loadgen.ConstructSUT(serving.inbox.put, ignore)
    failed: list[BaseException] = []

    def ask() -> None:
        try:
            # the last argument is a file that would replace the settings: none
            mlperf_loadgen.StartTestWithLogSettings(system, library, settings, logs, "")
        except BaseException as error:
            failed.append(error)
        finally:
            serving.inbox.put(None)

    asking = Thread(target=ask, daemon=True)
    asking.start()
    try:
        serving.work(complete)
    finally:
        asking.join()
        mlperf_loadgen.DestroySUT(system)
        mlperf_loadgen.DestroyQSL(library)
    if failed:
        raise failed[0]


def ignore(*_: Any) -> None:
    """Do nothing when samples are to be loaded or queries to be flushed."""


def complete(ids: list[int]) -> None:
    """Tell LoadGen that these samples are answered."""
    responses = [mlperf_loadgen.QuerySampleResponse(one, 0, 0) for one in ids]
    mlperf_loadgen.QuerySamplesComplete(responses)


def read_log(path: Path) -> Facts:
    """The last value of each key in LoadGen's detailed log."""
    lines = path.read_text().splitlines() if path.is_file() else []
    entries = [json.loads(line.removeprefix(PREFIX)) for line in lines if line.startswith(PREFIX)]
    log = {entry["key"]: entry["value"] for entry in entries}
    if "result_validity" not in log:
        raise RuntimeError(f"{path}: LoadGen wrote no result")
    return log


def numbers(log: Facts) -> Facts:
    """`valid`, LoadGen's verdict, and its numbers for the scenario, times in seconds."""
    return {"valid": log["result_validity"] == "VALID", **NUMBERS[log["effective_scenario"]](log)}


def percentile_s(log: Facts, percent: int) -> float:
    """A percentile of the latency as LoadGen says, whatever the count of samples supports."""
    return log[f"result_{percent}.00_percentile_latency_ns"] / NANOSECONDS


def single_stream_numbers(log: Facts) -> Facts:
    """Latencies of queries that came one by one."""
    percentiles = {f"p{percent}_s": percentile_s(log, percent) for percent in (50, 90, 99)}
    return {"queries": log["result_query_count"], **percentiles}


def offline_numbers(log: Facts) -> Facts:
    """Throughput of all samples at once."""
    return {
        "samples": log["generated_samples_per_query"],
        "samples_per_s": log["result_samples_per_second"],
    }


def server_numbers(log: Facts) -> Facts:
    """The rate that was asked for and the one that came, and how late the answers were."""
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
