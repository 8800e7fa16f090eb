"""An engine with one padding under test: rehearsals without LoadGen, and single tests with it."""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from tightrope.artifacts.files import storage_errors
from tightrope.inputs.arrays import Arrays, length
from tightrope.machine.foreign_load import own_seconds
from tightrope.machine.interference import Windows
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.traffic import loadgen
from tightrope.measure.traffic.serving import Query, Serving

Facts = dict[str, Any]

REHEARSAL_BATCHES = 4
# quantile of a long sample: the longer 2 % are more than the 1 % that p99 leaves out
LONG_SHARE = 0.98


class Rehearsal(NamedTuple):
    """What serving without LoadGen shows, to size the tests.

    Seconds of the shortest and of one of the longest samples alone, samples per second, and the
    answers to all samples (None unless they were requested).
    """

    short_s: float
    long_s: float
    samples_per_s: float
    answers: Facts | None


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
        numbers = loadgen.run_test(
            serving, settings, folder, seconds=seconds, queries=queries, tell=tell
        )
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
    answers = {"predictions": serving.predictions, "margins": serving.margins}
    return Rehearsal(short_s, long_s, len(bench.rows) / all_s, answers)


def by_length(rows: Sequence[Arrays]) -> list[int]:
    """Return the indices of the rows, those of the shortest first."""
    return sorted(range(len(rows)), key=lambda index: length(rows[index]))
