"""Measure rounds with a block of calls of each of several engines, in random order."""

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

from tightrope.jobs.child import Child, Limits, cpu_seconds
from tightrope.jobs.progress import ProgressBar
from tightrope.machine.interference import MAX_FOREIGN_CORES, Windows
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.timed_engine import TimedEngine
from tightrope.records.record import FEWEST_ROUNDS, Round

ROUNDS = 24
# rounds end after so long, once there are `FEWEST_ROUNDS`
MAX_SECONDS = 60.0
# a block has at least a call; one that takes longer than this fails as too slow
BLOCK_S, LIMIT_S = 0.1, 60.0
WARM_UP_S = 1.0


def rounds_of(
    engines: Sequence[TimedEngine],
    limits: Limits,
    machine: QuietMachine,
    title: str,
    indices: Iterable[int] = (0,),
) -> Iterator[list[Round]]:
    """Yield the rounds of each of these inputs, see `measure_rounds`, with engines loaded once.

    They are loaded in their order and share the memory of `limits`. Raises as `Child.ask` does.
    """
    limits = replace(limits, memory_bytes=limits.memory_bytes / len(engines))
    with ExitStack() as stack:
        workers = [stack.enter_context(Child(one, limits)) for one in engines]
        for worker in workers:
            worker.ask("load")
        machine.wait()
        for index in indices:
            for worker in workers:
                worker.ask("first_call", index)
                worker.ask("warm_up", index, None, WARM_UP_S, BLOCK_S)
            yield measure_rounds(workers, machine, title, index)


def measure_rounds(
    workers: list[Child], machine: QuietMachine, title: str, index: int
) -> list[Round]:
    """Return the rounds of inputs `index`.

    Those that other load disturbed are repeated while time may be lost. `title` is that of the
    progress bar.
    """
    windows = Windows(machine.processors, lambda: cpu_seconds(workers))
    order = random.Random(0)
    rounds: list[Round] = []
    counted, began, lost = 0, time.monotonic(), machine.lost_s
    with ProgressBar(title, ROUNDS) as bar:
        while counted < ROUNDS:
            spent = time.monotonic() - began - (machine.lost_s - lost)
            if counted >= FEWEST_ROUNDS and spent > MAX_SECONDS:
                break
            started = time.monotonic()
            windows.open()
            blocks: list[list[float]] = [[] for _ in workers]
            for which in order.sample(range(len(workers)), len(workers)):
                answer = workers[which].ask("block", index, BLOCK_S, 1, LIMIT_S)
                blocks[which] = answer.samples_s
            foreign = windows.close()
            rounds.append(Round(blocks_s=blocks, foreign_cores=foreign))
            if foreign > MAX_FOREIGN_CORES and machine.left_s:
                machine.lose(time.monotonic() - started)
                machine.wait_for_idle_gap()
            else:
                counted += 1
                bar.add()
    return rounds
