"""One measurement of a cascade: threshold, answers, and rounds paired with each model alone."""

import math
import statistics
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tightrope.artifacts.manifest import classes_of
from tightrope.engines.load import load_engine
from tightrope.errors import TightropeError, WorkFailed
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.jobs.child import Child, Limits, failure, set_failure, supervised
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.cascade.engine import Alone, Cascade
from tightrope.measure.cascade.members import Member
from tightrope.measure.cascade.served_engine import Pairs, Serve, ServedEngine
from tightrope.measure.cascade.threshold import Pool, chosen, ordered_tests
from tightrope.measure.cascade.traffic import serve_traffic
from tightrope.measure.rounds import ROUNDS, measure_rounds, start, warm_up
from tightrope.records.cascade import CascadeRecord
from tightrope.variants import parse

# a block has as many batches as take the large model at least so long
BLOCK_S = 0.3
CALIBRATION, EVALUATION = "calibration", "evaluation"


class Measurement:
    """The measurement of one cascade, which fills in its record."""

    def __init__(
        self,
        record: CascadeRecord,
        members: tuple[Member, Member],
        splits: dict[str, Path],
        machine: QuietMachine,
        limits: Limits,
        traffic: dict[str, Any] | None,
    ) -> None:
        self.record = record
        self.members = members
        self.machine = machine
        self.limits = limits
        self.traffic = traffic
        self.labels: dict[str, list[int] | None] = {}
        self.examples: dict[str, Pairs] = {}
        for name, path in splits.items():
            examples = read_split(path)
            labels: list[Any] = [example.get("label") for example in examples]
            self.labels[name] = None if None in labels else labels
            encoders = [
                load_encoder(one.checkpoint, max_sequence=one.max_sequence) for one in members
            ]
            self.examples[name] = Pairs(*(encode(examples) for encode in encoders))

    def run(self) -> None:
        """Fill in the record, or why an engine failed."""
        record = self.record
        if record.agreement is None and self.labels[CALIBRATION] is None:
            raise TightropeError(
                f"cascades.{record.cascade}: the data have no labels, so no accuracy can be kept; "
                f"set cascades.{record.cascade}.agreement, the share of equal answers"
            )
        try:
            with ExitStack() as stack:
                self.measure(stack)
            record.lost_s, record.busiest = self.machine.lost_s, self.machine.busiest
            if self.traffic is not None and record.threshold is not None:
                self.measure_traffic(self.traffic)
        except WorkFailed as error:
            record.rounds = []
            set_failure(record, error, record.variant, self.limits)

    def measure(self, stack: ExitStack) -> None:
        """Choose the threshold, and where there is one, evaluate and time the cascade."""
        record = self.record
        alone = [self.started(stack, partial(self.load_alone, place), 4) for place in (0, 1)]
        start(alone, self.machine)
        record.calibration = self.answers(CALIBRATION, *alone)
        pool = Pool(*(record.calibration[name] for name in Pool._fields))
        budget = record.budget_points / 100
        tests = ordered_tests(pool, budget=budget, agreement=record.agreement)
        record.tests, record.threshold = [dict(test) for test in tests], chosen(tests)
        if record.threshold is None:
            return
        both = self.started(stack, self.load_both, 2)
        start([both], self.machine)
        record.evaluation = self.answers(EVALUATION, *alone, both)
        workers = [*alone, both]
        batch_s = statistics.median(self.seconds)
        batches = max(1, math.ceil(BLOCK_S / batch_s))
        sizes = [worker.ask("prepare", EVALUATION, batches, ROUNDS) for worker in workers]
        record.block_samples = sizes[0]
        warm_up(workers)
        record.rounds = measure_rounds(workers, self.machine, "timing the cascade")
        record.peak_rss_bytes = [worker.ask("peak_rss_bytes") for worker in workers]

    def measure_traffic(self, plan: dict[str, Any]) -> None:
        """Put the three under traffic, in a child of their own; the rounds stay if that fails."""
        record, engines = self.record, [one.engine for one in self.members]
        work = partial(serve_traffic, record, engines, self.examples[EVALUATION], plan)
        classes = classes_of(self.members[0].checkpoint)
        work = partial(work, classes=classes, machine=self.machine)
        try:
            record.traffic, record.lost_s, record.busiest = supervised(work, limits=self.limits)
        except WorkFailed as error:
            reason = failure(error, record.variant, self.limits)["reason"]
            record.traffic = {"plan": plan, "samples": 0, "tests": [], "reason": reason}

    def started(self, stack: ExitStack, load: Any, share: int) -> Child:
        """Return a child, within the life of `stack`, with that part of the job's memory."""
        engine = ServedEngine(
            load,
            self.examples,
            self.record.processors,
            batch=self.record.batch,
            classes=classes_of(self.members[0].checkpoint),
            device=parse(self.record.variant).device,
        )
        limits = replace(self.limits, memory_bytes=self.limits.memory_bytes / share)
        return stack.enter_context(Child(engine, limits))

    def load_alone(self, place: int) -> tuple[Serve, dict[str, float]]:
        """Load a model alone, the small one at `place` 0, the large one at 1."""
        run, seconds = load_engine(self.members[place].engine, threads=self.record.threads)
        return Alone(run, place, escalated=bool(place)), seconds

    def load_both(self) -> tuple[Serve, dict[str, float]]:
        """Load the cascade; the seconds are the sums of both engines."""
        assert self.record.threshold is not None
        threads = self.record.threads
        (small, first), (large, then) = (
            load_engine(one.engine, threads=threads) for one in self.members
        )
        seconds = {name: first[name] + then[name] for name in first}
        return Cascade(small, large, self.record.threshold), seconds

    def answers(self, split: str, small: Child, large: Child, *both: Child) -> dict[str, Any]:
        """Return the answers of the workers to a split, see `records.cascade.Answers`."""
        own, theirs, *served = (one.ask("answers", split) for one in (small, large, *both))
        self.seconds: list[float] = theirs["seconds"]
        return {
            "labels": self.labels[split],
            "small": own["predictions"],
            "large": theirs["predictions"],
            "confidences": own["confidences"],
            "cascade": served[0]["predictions"] if served else [],
            "escalated": served[0]["escalated"] if served else [],
        }
