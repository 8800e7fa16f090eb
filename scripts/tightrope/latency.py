"""The latency of a variant, beside its baseline's on the same machine in the same minutes."""

import random
import resource
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from tightrope.files import read_json, sha256
from tightrope.host import describe_host
from tightrope.inputs import Arrays, timing_batches
from tightrope.loading import load_engine
from tightrope.records import LatencyRecord
from tightrope.supervise import Child, Limits, WorkFailed, failure
from tightrope.timing import timed_calls

Shape = dict[str, int]


def measure_latency(
    engine: Path | str,
    baseline: Path | str,
    checkpoint: Path | str,
    data: Path | str,
    target: Path | str,
    *,
    model: str,
    variant: str,
    shapes: list[Shape],
    plan: dict[str, Any],
    max_sequence: int,
    threads: int,
    libraries: dict[str, str | None],
    limits: Limits,
) -> None:
    """Write the LatencyRecord of `variant`, also when it cannot be measured.

    `engine` and `baseline` are engine.json files; they are the same for the baseline itself,
    which is then measured alone. `plan` is `latency` of the configuration. A transient
    failure raises TightropeError unless this is the last attempt.
    """
    built, rival = read_json(engine), read_json(baseline)
    record = LatencyRecord(
        model=model,
        variant=variant,
        host=describe_host(),
        libraries=libraries,
        engine_sha256=sha256(engine),
        threads=threads,
    )
    if built["status"] != "ok":
        record.status, record.reason = "failed", f"not built: {built['reason']}"
    else:
        paths = [Path(engine)]
        if rival["status"] == "ok" and rival["variant"] != variant:
            record.baseline = rival["variant"]
            paths.append(Path(baseline))
        batches = timing_batches(checkpoint, data, shapes, max_sequence=max_sequence)
        try:
            measure_side_by_side(record, paths, shapes, batches, plan, limits)
        except WorkFailed as error:
            record.shapes = []
            for name, value in failure(error, variant, limits).items():
                setattr(record, name, value)
    record.write(target)


def measure_side_by_side(
    record: LatencyRecord,
    engines: list[Path],
    shapes: list[Shape],
    batches: list[Arrays],
    plan: dict[str, Any],
    limits: Limits,
) -> None:
    """Fill in `record`: each engine in a process of its own, all shapes, blocks in turn.

    The engines share the memory that the job may use.
    """
    limits = replace(limits, memory_bytes=limits.memory_bytes / len(engines))
    with ExitStack() as stack:
        workers = [
            stack.enter_context(Child(TimedEngine(path, batches, record.threads), limits, role))
            for path, role in zip(engines, ("", "baseline "), strict=False)
        ]
        loads = [worker.ask("load") for worker in workers]
        record.import_s, record.load_s = loads[0]["import_s"], loads[0]["load_s"]
        for index, shape in enumerate(shapes):
            first, *_ = [worker.ask("first_call", index) for worker in workers]
            record.first_call_s = record.first_call_s or first
            own, theirs = measure_shape(workers, index, plan, random.Random(index))
            record.shapes.append(
                {
                    **shape,
                    "first_call_s": first,
                    "blocks_s": own,
                    "baseline_blocks_s": theirs,
                }
            )
        record.peak_rss_bytes = workers[0].ask("peak_rss_bytes")


def measure_shape(
    workers: list[Child], index: int, plan: dict[str, Any], order: random.Random
) -> tuple[list[list[float]], list[list[float]] | None]:
    """Blocks of the first worker and, where there are two, of the second.

    Warm-up comes first and is not kept. Then `pairs` pairs of blocks, which of the two goes
    first drawn at random, together at least `seconds` and `calls` for each worker. Raises
    WorkFailed when one of them takes longer than `max_seconds` for its own calls.
    """
    pairs, limit = plan["pairs"], plan["max_seconds"]
    blocks: list[list[list[float]]] = [[] for _ in workers]
    spent = [0.0 for _ in workers]

    def block(which: int, seconds: float, calls: int) -> list[float]:
        began = time.monotonic()
        samples = workers[which].ask("calls", index, seconds, calls, limit - spent[which])
        spent[which] += time.monotonic() - began
        if spent[which] > limit:
            count = len(samples) + sum(map(len, blocks[which]))
            raise workers[which].failed(f"too slow ({count} calls in {limit:g} s)", transient=False)
        return samples

    for which in range(len(workers)):
        block(which, plan["warmup_seconds"], plan["warmup_calls"])
    for _ in range(pairs):
        for which in order.sample(range(len(workers)), len(workers)):
            blocks[which].append(block(which, plan["seconds"] / pairs, -(-plan["calls"] // pairs)))
    return blocks[0], blocks[1] if len(blocks) > 1 else None


class TimedEngine:
    """What the child answers: one engine, loaded there and called with the given batches."""

    def __init__(self, path: Path, batches: list[Arrays], threads: int) -> None:
        self.path = path
        self.batches = batches
        self.threads = threads
        self.run: Callable[[Arrays], Any] | None = None

    def __call__(self, request: str, *arguments: Any) -> Any:
        """Answer one of the requests named as the methods below."""
        return getattr(self, request)(*arguments)

    def load(self) -> dict[str, float]:
        """Seconds of importing the runtime and of loading the engine."""
        self.run, seconds = load_engine(self.path, threads=self.threads)
        return seconds

    def first_call(self, index: int) -> float:
        """Seconds of the first call with batch `index`."""
        return self.calls(index, 0.0, 1, 0.0)[0]

    def calls(self, index: int, seconds: float, calls: int, limit: float) -> list[float]:
        """Seconds of each call with batch `index`, see `timed_calls`."""
        return timed_calls(
            self.run, self.batches[index], seconds=seconds, calls=calls, limit_seconds=limit
        )

    def peak_rss_bytes(self) -> int:
        """The highest resident memory of this process so far, interpreter included."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
