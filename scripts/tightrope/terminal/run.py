"""What a run has done and has yet to do, from the events that Snakemake tells."""

from collections import Counter

from tightrope.terminal.jobs import Job
from tightrope.terminal.seconds import Seconds


class Run:
    """The jobs of one run: planned, running and ended."""

    def __init__(self, seconds: Seconds) -> None:
        """A run in which nothing is planned yet; `seconds` is what earlier runs took."""
        self.seconds = seconds
        self.planned: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.running: dict[int, Job] = {}
        self.failed = self.crashed = 0
        self.reasons: list[str] = []
        self.began: float | None = None
        self.busy = 0.0

    @property
    def total(self) -> int:
        """How many jobs the run has."""
        return self.planned.total()

    @property
    def done(self) -> int:
        """How many jobs have ended, well or not."""
        return self.ended.total()

    def plan(self, jobs_by_rule: dict[str, int]) -> None:
        """Take the number of jobs of each rule."""
        self.planned = Counter(jobs_by_rule)

    def start(self, number: int, job: Job) -> None:
        """A job begins, for the first time or once more."""
        self.began = job.began if self.began is None else self.began
        self.running[number] = job

    def end(self, number: int, now: float) -> tuple[Job, float] | None:
        """The job with that number and its seconds; None where it was not seen to start."""
        job = self.running.pop(number, None)
        if job is None:
            return None
        self.ended[job.rule] += 1
        self.busy += now - job.began
        return job, now - job.began

    def fail(self, reason: str) -> str:
        """Count a failed record; its reason, without what an earlier one has told already.

        The records of a variant that was not built repeat the reason of its engine.
        """
        self.failed += 1
        for told in self.reasons:
            if reason.endswith(told):
                return f"{reason.removesuffix(told).rstrip(': ')} (the reason is above)".strip()
        self.reasons.append(reason)
        return reason

    def again(self, job: Job) -> None:
        """A job that ended with an error gets another attempt."""
        self.ended[job.rule] -= 1
        self.crashed -= 1

    def seconds_left(self, now: float) -> float | None:
        """Seconds until all jobs have ended; None where too few of them are known to tell."""
        running = list(self.running.values())
        waiting = self.planned - self.ended - Counter(job.rule for job in running)
        known: list[float] = []
        for rule, count in waiting.items():
            seconds = self.seconds.of_rule(rule)
            known += [seconds] * count if seconds is not None else []
        for job in running:
            seconds = self.job_left(job, now)
            known += [seconds] if seconds is not None else []
        jobs = waiting.total() + len(running)
        if not known or 2 * len(known) < jobs:
            return None
        # what is unknown takes as long as the others do
        return sum(known) * jobs / len(known) / self.at_once(now)

    def job_left(self, job: Job, now: float) -> float | None:
        """Seconds that a running job still takes: by the bar in its log, else as it took before."""
        told = job.progress()
        if told is not None and told.left is not None:
            return told.left
        before = self.seconds.of_job(job)
        return None if before is None else max(0.0, before - (now - job.began))

    def at_once(self, now: float) -> float:
        """How many jobs ran at once so far, on average; at least 1."""
        wall = now - self.began if self.began is not None else 0.0
        spent = self.busy + sum(now - job.began for job in self.running.values())
        return max(1.0, spent / wall) if wall > 0 else 1.0
