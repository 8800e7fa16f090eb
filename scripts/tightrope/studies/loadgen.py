"""MLCommons LoadGen and an engine that serves it, in one process; and rehearsals without it.

Dynamic batching: samples that wait when the engine is free form its next batch, padded.
"""

import json
import os
import shutil
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import mlperf_loadgen
from tqdm import tqdm

from tightrope.artifacts.files import sha256, storage_errors
from tightrope.inputs.arrays import PIXELS, Arrays, length, stack
from tightrope.machine.counters import own_seconds
from tightrope.machine.interference import Windows
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
# an engine: from inputs to the class and the margin (highest logit minus the second) of each row
Answer = Callable[[Arrays], list[tuple[int, float]]]


class Serving:
    """Engine that answers queries in batches, in the thread that calls `work`.

    Other threads put lists of LoadGen's `QuerySample` into `inbox`, and None after the last. They
    wait in order of arrival, in one queue per length of `padded`, to which the sample of that index
    is padded (None: to the longest of its batch). The next batch, of at most `batch` samples, comes
    from the queue whose first sample has waited longest, so no sample waits forever, and never
    mixes lengths.

    For each index of `rows`, `predictions` and `margins` hold the latest answer, -1 and 0 before
    the first. `tokens` counts tokens of samples, `padded_tokens` those added by padding; of images
    they are tokens of equal memory cost.
    """

    def __init__(
        self, answer: Answer, rows: Sequence[Arrays], padded: Sequence[int | None], *, batch: int
    ) -> None:
        self.answer = answer
        self.rows = rows
        self.padded = padded
        self.batch = batch
        self.inbox: SimpleQueue[list[Any] | None] = SimpleQueue()
        self.open = True
        self.arrived = 0
        self.queues: dict[int | None, deque[tuple[int, Any]]] = {}
        self.predictions = [-1] * len(rows)
        self.margins = [0.0] * len(rows)
        self.batches = self.tokens = self.padded_tokens = 0

    def work(self, complete: Callable[[list[int]], object]) -> None:
        """Answer queries until the inbox holds None; call `complete` with the ids of each batch.

        After an error of the engine, all queries are completed without an answer, because LoadGen
        would wait for them forever. The error is raised at the end.
        """
        failed: BaseException | None = None
        while batch := self.next_batch():
            if failed is None:
                try:
                    self.run([one.index for one in batch])
                except BaseException as error:  # even SystemExit: open queries must be completed
                    failed = error
            complete([one.id for one in batch])
        if failed is not None:
            raise failed

    def next_batch(self) -> list[Any]:
        """Return the next batch of the queries received so far, an empty one after the last."""
        self.receive()
        if not self.queues:
            return []
        padded = min(self.queues, key=lambda one: self.queues[one][0][0])
        queue = self.queues[padded]
        batch = [queue.popleft()[1] for _ in range(min(self.batch, len(queue)))]
        if not queue:
            del self.queues[padded]
        return batch

    def receive(self) -> None:
        """Move all queries of the inbox to the queues; where they are empty, wait for it."""
        while self.open:
            try:
                queries = self.inbox.get(block=not self.queues)
            except Empty:
                return
            self.open = queries is not None
            for query in queries or ():
                queue = self.queues.setdefault(self.padded[query.index], deque())
                queue.append((self.arrived, query))
                self.arrived += 1

    def run(self, indices: Sequence[int]) -> None:
        """Run samples of one padded length, and store their predictions and margins.

        Raises WorkFailed unless the logits are finite numbers [batch, classes].
        """
        rows, sequence = [self.rows[index] for index in indices], self.padded[indices[0]]
        answered = self.answer(stack(rows, sequence=sequence))
        for index, (prediction, margin) in zip(indices, answered, strict=True):
            self.predictions[index], self.margins[index] = prediction, margin
        self.batches += 1
        lengths = [length(row) for row in rows]
        self.tokens += sum(lengths)
        self.padded_tokens += len(lengths) * (sequence or max(lengths)) - sum(lengths)


def bucket_edges(lengths: Iterable[int], count: int) -> list[int]:
    """Return the `count` edges, ascending, that minimize the padded tokens over all `lengths`.

    A length is padded to the smallest edge that is not shorter; the last edge is the longest
    length. Fewer distinct lengths give fewer edges. The solution is exact: optimal partition of a
    sorted line by dynamic programming (Fisher 1958, "On Grouping for Maximum Homogeneity"; Wang and
    Song 2011, "Ckmeans.1d.dp"), in O(count * distinct lengths squared). `count` and the number of
    lengths are at least 1.
    """
    histogram = sorted(Counter(lengths).items())
    edges = [length for length, _ in histogram]
    samples = [0, *accumulate(number for _, number in histogram)]  # of the n shortest lengths

    def tokens(start: int, end: int) -> int:
        return edges[end - 1] * (samples[end] - samples[start])

    # tokens and edges of the best partition of the n shortest lengths; each iteration adds a bucket
    best: list[tuple[int, list[int]]] = [(0, [])]
    best += [(tokens(0, end), [edges[end - 1]]) for end in range(1, len(edges) + 1)]
    for _ in range(min(count, len(edges)) - 1):
        finer = best[:1]
        for end in range(1, len(best)):
            total, start = min((best[start][0] + tokens(start, end), start) for start in range(end))
            finer.append((total, [*best[start][1], edges[end - 1]]))
        best = finer
    return best[-1][1]


def padded_lengths(
    padding: str, lengths: Sequence[int], *, max_sequence: int, edges: Sequence[int]
) -> list[int | None]:
    """Return the padded length of each sample in tokens; None: the longest of its batch.

    `fixed`: `max_sequence`; `longest` and, of images, `none`: None; `bucketed`: the smallest of the
    ascending `edges` that is not shorter, of which the last is not shorter than any.
    """
    if padding == "fixed":
        return [max_sequence] * len(lengths)
    if padding != "bucketed":
        return [None] * len(lengths)
    return [edges[bisect_left(edges, length)] for length in lengths]


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
