"""MLCommons LoadGen and an engine that serves it, in one process; and rehearsals without it."""

import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import mlperf_loadgen
from tqdm import tqdm

from tightrope.artifacts.files import sha256, storage_errors
from tightrope.inputs.arrays import PIXELS, Arrays, length
from tightrope.machine.foreign_load import own_seconds
from tightrope.machine.interference import Windows
from tightrope.studies.batching import Answer, Serving, bucket_edges, padded_lengths
from tightrope.studies.traffic import UNPADDED, Rehearsal, Sent, Settings

PREFIX = ":::MLLOG "
NANOSECONDS = 1e9
# seeds of mlperf.conf in LoadGen 6.0.17, the same for every model and scenario
SEEDS = {
    "qsl_rng_seed": 2085463073848966840,
    "sample_index_rng_seed": 2747215439041700203,
    "schedule_rng_seed": 16159082839903944936,
}
LATENCY = "result_{}.00_percentile_latency_ns"
# the fields of a test in LoadGen's log, by scenario; the sample count may not support a percentile
RESULTS = {
    "SingleStream": {
        "queries": "result_query_count",
        **{f"p{percent}_s": LATENCY.format(percent) for percent in (50, 90, 99)},
    },
    "Offline": {
        "samples": "generated_samples_per_query",
        "samples_per_s": "result_samples_per_second",
    },
    "Server": {
        "queries": "result_query_count",
        "target_per_s": "effective_target_qps",
        "issued_per_s": "result_scheduled_samples_per_sec",
        "p99_s": LATENCY.format(99),
        "late": "result_overlatency_query_count",
    },
}
# memory for the decoded images of one engine: 1783 images of 3 x 224 x 224 in float32
IMAGE_BYTES = 2**30
REHEARSAL_BATCHES = 4
# quantile of a long sample: the longer 2 % are more than the 1 % that p99 leaves out
LONG_SHARE = 0.98


@dataclass
class LoadGen:
    """An engine and the samples that LoadGen sends it, in a child process.

    `loader` returns the engine and the encoded examples of the split. `longest` are the tokens to
    which `fixed` pads; LoadGen's logs are written below `folder`. The methods are the requests.
    """

    settings: Settings
    folder: Path
    loader: Callable[[], tuple[Answer, Sequence[Arrays]]]
    longest: int
    # after `load`
    answer: Answer = field(init=False)
    rows: list[Arrays] = field(init=False)
    padded: dict[str, list[int | None]] = field(init=False)

    def __call__(self, request: str, *arguments: Any) -> Any:
        """Answer a request, named as one of the methods below."""
        return getattr(self, request)(*arguments)

    def load(self) -> tuple[Sent, dict[str, int]]:
        """Load the engine and all texts, or as many images, decoded, as fit, at least one.

        These are the first images of the split; any first n images hold the labels in proportion.
        Returns also the size of the images, of texts none.
        """
        self.answer, rows = self.loader()
        texts = PIXELS not in rows[0]
        held = len(rows) if texts else max(1, IMAGE_BYTES // rows[0][PIXELS].nbytes)
        self.rows = list(tqdm(rows[:held], desc="decoding", disable=texts))
        lengths = [length(row) for row in self.rows]
        padding = self.settings.padding if texts else (UNPADDED,)
        edges = bucket_edges(lengths, self.settings.buckets) if "bucketed" in padding else []
        self.padded = {
            one: padded_lengths(one, lengths, max_sequence=self.longest, edges=edges)
            for one in padding
        }
        sent = Sent(samples=len(self.rows), of=len(rows), edges=edges)
        if texts:
            sent.lengths, sent.longest = lengths, self.longest
            return sent, {}
        return sent, dict(zip(("height", "width"), self.rows[0][PIXELS].shape[1:], strict=True))

    def rehearse(self, padding: str) -> Rehearsal:
        """Serve samples of all lengths twice, because the first call of each shape takes longer.

        Where throughput is measured, all samples are then served once, for their answers.
        """
        order = sorted(range(len(self.rows)), key=lambda index: length(self.rows[index]))
        # in the order of the split, so that batches hold short and long samples
        some = sorted(order[:: max(1, len(order) // (REHEARSAL_BATCHES * self.settings.batch))])
        long = order[int(LONG_SHARE * (len(order) - 1))]
        for _ in range(2):
            (_, some_s), (_, short_s), (_, long_s) = (
                self.served(padding, one) for one in (some, order[:1], [long])
            )
        found = Rehearsal(
            padding=padding, short_s=short_s, long_s=long_s, samples_per_s=len(some) / some_s
        )
        if "offline" in self.settings.scenarios:
            serving, all_s = self.served(padding, range(len(self.rows)))
            found.samples_per_s = len(self.rows) / all_s
            found.predictions, found.margins = serving.predictions, serving.margins
        return found

    def served(self, padding: str, indices: Sequence[int]) -> tuple[Serving, float]:
        """Serve these samples, all queued at once, without LoadGen; return also the seconds."""
        serving = self.serving(padding)
        serving.inbox.put([mlperf_loadgen.QuerySample(0, index) for index in indices])
        serving.inbox.put(None)
        few = len(indices) < len(self.rows)
        with tqdm(total=len(indices), desc=f"answering, {padding}", disable=few) as bar:
            began = time.perf_counter()
            serving.work(lambda ids: bar.update(len(ids)))
            return serving, time.perf_counter() - began

    def serving(self, padding: str, indices: Sequence[int] | None = None) -> Serving:
        """Return the engine as a new server of these samples, None: of all."""
        among, padded = range(len(self.rows)) if indices is None else indices, self.padded[padding]
        rows = [self.rows[one] for one in among]
        batch = self.settings.batch
        return Serving(self.answer, rows, [padded[one] for one in among], batch=batch)

    def test(
        self,
        name: str,
        padding: str,
        scenario: str,
        settings: dict[str, Any],
        indices: Sequence[int] | None = None,
    ) -> dict[str, Any]:
        """Run one test of these samples (None: of all) in the mode PerformanceOnly.

        `settings` are LoadGen's of the scenario, with the fewest queries or, offline, samples; the
        test takes at least its `min_duration_ms`, 0 without. Replaces logs of that name. Returns
        the fields of a `LoadGenTest` but its padding and round; `foreign_cores` are of the
        processors of this process. Exceptions of the engine are raised unchanged; RuntimeError
        where LoadGen wrote no result.
        """
        folder, serving = self.folder / f"{padding}-{name}", self.serving(padding, indices)
        windows = Windows(sorted(os.sched_getaffinity(0)), own_seconds)
        began = time.monotonic()
        with storage_errors(folder):
            if folder.exists():
                shutil.rmtree(folder)
            folder.mkdir(parents=True)
            converse(serving, scenario, settings, folder)
            facts = results(scenario, folder / "mlperf_log_detail.txt")
            facts["foreign_cores"] = windows.close()
            facts["duration_s"] = time.monotonic() - began
            files = sorted(one for one in folder.rglob("*") if one.is_file())
            facts["logs"] = {str(one.relative_to(self.folder.parent)): sha256(one) for one in files}
        if scenario == "Offline":
            facts["batches"] = serving.batches
            if padding != UNPADDED:
                facts |= {"tokens": serving.tokens, "padded_tokens": serving.padded_tokens}
        return facts


def converse(serving: Serving, scenario: str, settings: dict[str, Any], folder: Path) -> None:
    """Run LoadGen in a thread and answer its queries with `serving` until the test ends.

    LoadGen's callback is a C method that cannot fail (`SimpleQueue.put`): a Python exception in a
    callback would abort the process.
    """
    test, logs = mlperf_loadgen.TestSettings(), mlperf_loadgen.LogSettings()
    test.mode = mlperf_loadgen.TestMode.PerformanceOnly
    test.scenario = getattr(mlperf_loadgen.TestScenario, scenario)
    # by default a test would take ten seconds at least
    for name, value in {"min_duration_ms": 0, **SEEDS, **settings}.items():
        setattr(test, name, value)
    logs.enable_trace = False
    logs.log_output.outdir = str(folder)
    size = len(serving.rows)
    library = mlperf_loadgen.ConstructQSL(size, size, ignore, ignore)
    system = mlperf_loadgen.ConstructSUT(serving.inbox.put, ignore)
    # the last argument is a file that would override the settings: no file
    asked = partial(mlperf_loadgen.StartTestWithLogSettings, system, library, test, logs, "")
    try:
        with ThreadPoolExecutor(1) as pool:
            asking = pool.submit(asked)
            asking.add_done_callback(lambda _: serving.inbox.put(None))
            serving.work(complete)
        asking.result()
    finally:
        mlperf_loadgen.DestroySUT(system)
        mlperf_loadgen.DestroyQSL(library)


def ignore(*_: Any) -> None:
    """Do nothing: LoadGen's callback to load or unload samples, or to flush queries."""


def complete(ids: list[int]) -> None:
    """Report these samples to LoadGen as completed."""
    responses = [mlperf_loadgen.QuerySampleResponse(one, 0, 0) for one in ids]
    mlperf_loadgen.QuerySamplesComplete(responses)


def results(scenario: str, path: Path) -> dict[str, Any]:
    """Return `valid`, the verdict in LoadGen's detailed log, and its results, times in seconds.

    Raises RuntimeError for a log without a result.
    """
    lines = path.read_text().splitlines() if path.is_file() else []
    entries = [json.loads(line.removeprefix(PREFIX)) for line in lines if line.startswith(PREFIX)]
    # the last value of each
    log = {entry["key"]: entry["value"] for entry in entries}
    if "result_validity" not in log:
        raise RuntimeError(f"{path}: LoadGen wrote no result")
    found = {
        name: log[key] / NANOSECONDS if key.endswith("_ns") else log[key]
        for name, key in RESULTS[scenario].items()
    }
    return {"valid": log["result_validity"] == "VALID", **found}
