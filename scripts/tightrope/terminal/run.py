"""State of a run, from Snakemake's events."""

from collections import Counter

from tightrope.terminal.jobs import Job
from tightrope.terminal.seconds import Seconds


class Run:
    """Planned, running and ended jobs of a run."""

    def __init__(self, seconds: Seconds) -> None:
        """Start a run without planned jobs; `seconds` holds job durations of earlier runs."""
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
        """Number of jobs in the run."""
        return self.planned.total()

    @property
    def done(self) -> int:
        """Number of jobs that have ended, failed ones included."""
        return self.ended.total()

    def plan(self, jobs_by_rule: dict[str, int]) -> None:
        """Set the number of jobs per rule."""
        self.planned = Counter(jobs_by_rule)

    def start(self, number: int, job: Job) -> None:
        """Record the start of a job, first attempt or retry."""
        self.began = job.began if self.began is None else self.began
        self.running[number] = job

    def end(self, number: int, now: float) -> tuple[Job, float] | None:
        """Return an ended job and its seconds, None if its start was not seen."""
        job = self.running.pop(number, None)
        if job is None:
            return None
        self.ended[job.rule] += 1
        self.busy += now - job.began
        return job, now - job.began

    def fail(self, reason: str) -> str:
        """Count a failed record and return its reason, shortened if reported before.

        Records of a variant that was not built repeat the reason of its engine.
        """
        self.failed += 1
        for told in self.reasons:
            if reason.endswith(told):
                return f"{reason.removesuffix(told).rstrip(': ')} (the reason is above)".strip()
        self.reasons.append(reason)
        return reason

    def again(self, job: Job) -> None:
        """Undo the counts of a job that ended with an error and is retried."""
        self.ended[job.rule] -= 1
        self.crashed -= 1

    def seconds_left(self, now: float) -> float | None:
        """Estimate the seconds until all jobs have ended, None if too few durations are known."""
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
        # assume the mean of the known durations for the unknown ones
        return sum(known) * jobs / len(known) / self.at_once(now)

    def job_left(self, job: Job, now: float) -> float | None:
        """Estimate a job's remaining seconds from the bar in its log, else from earlier runs."""
        told = job.progress()
        if told is not None and told.left is not None:
            return told.left
        before = self.seconds.of_job(job)
        return None if before is None else max(0.0, before - (now - job.began))

    def at_once(self, now: float) -> float:
        """Return the mean number of concurrent jobs so far, at least 1."""
        wall = now - self.began if self.began is not None else 0.0
        spent = self.busy + sum(now - job.began for job in self.running.values())
        return max(1.0, spent / wall) if wall > 0 else 1.0
