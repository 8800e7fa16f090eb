"""Jobs of a run as the terminal names them, how far they and the run are, and the time left."""

import math
import os
import re
import time
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tightrope.artifacts.files import read_json, write_json
from tightrope.errors import TightropeError

TAIL_BYTES = 4096
# a tqdm bar: `predicting:  40%|####      | 12/30 [00:08<00:12,  1.49chunk/s]`
BAR = re.compile(
    r"(?P<what>[^:\r\n|]+):\s+(?P<percent>\d+)%\|[^|]*\| *(?P<count>[\d.]+[kMG]?/[\d.]+[kMG]?)"
    r" \[[\d:]+<(?P<left>[\d:]+|\?)"
)


class Progress(NamedTuple):
    """Progress of a step in words, and the remaining seconds if known."""

    words: str
    left: float | None


@dataclass
class Job:
    """Job with its rule, subject (`tiny/cpu-pytorch-fp32`), files and start time."""

    rule: str
    subject: str
    outputs: list[str] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    began: float = 0.0
    trained: bool = True

    @property
    def words(self) -> str:
        """Rule name in words; a model that is not trained is only copied and checked."""
        return self.rule.replace("_", " ") if self.trained else "check model"

    def progress(self) -> Progress | None:
        """Return the progress of the job's step from its logs, None if they show none."""
        began = time.time() - (time.monotonic() - self.began)
        told = (progress_in(path, since=began) for path in self.logs)
        return next((one for one in told if one is not None), None)

    @property
    def key(self) -> str:
        """Key under which the job's seconds are stored."""
        return f"{self.rule} {self.subject}".strip()


def jobs_to_run(workflow: Any) -> list[Job]:
    """Return the planned jobs of a Snakemake workflow whose DAG is built."""
    return [
        Job(job.rule.name, subject_of(job.rule.name, job.wildcards_dict))
        for job in workflow.dag.needrun_jobs()
    ]


def job_of(event: Mapping[str, Any], began: float, untrained: Container[str] = ()) -> Job:
    """Return the job that a job-start event describes; these models are `untrained`."""
    rule, wildcards = event["rule_name"], event["wildcards"]
    outputs, logs = list(event["output"]), list(event["log"])
    trained = rule != "train_model" or wildcards["model"] not in untrained
    return Job(rule, subject_of(rule, wildcards), outputs, logs, began, trained)


def subject_of(rule: str, wildcards: Mapping[str, str]) -> str:
    """Return model and variant, then the other wildcards that distinguish the rule's jobs."""
    rest = dict(wildcards)
    model = rest.pop("model", "")
    variant = rest.pop("variant", "")
    if not variant and {"device", "rest"} <= rest.keys():
        engine = rule.removeprefix("build_")
        variant = f"{rest.pop('device')}-{engine}-{rest.pop('rest')}"
    others = "-".join(str(value) for value in rest.values())
    if variant:
        named = f"{model}/{variant}" if model else variant
        return f"{named} {others}".strip()
    return "/".join(part for part in (model, others) if part)


def progress_in(path: Path | str, *, since: float = 0.0) -> Progress | None:
    """Return the progress from the last bar in the log: `predicting 40 %, 0:12 left`.

    None if the log has no bar, if its last bar is full (another step has begun), or if it was last
    written before `since` (`time.time()`), by an earlier run.
    """
    try:
        with Path(path).open("rb") as stream:
            if os.fstat(stream.fileno()).st_mtime < since:
                return None
            size = stream.seek(0, 2)
            stream.seek(max(0, size - TAIL_BYTES))
            tail = stream.read().decode(errors="replace")
    except OSError:
        return None
    bars = list(BAR.finditer(tail))
    if not bars or bars[-1]["percent"] == "100":
        return None
    what, percent, left = bars[-1]["what"].strip(), bars[-1]["percent"], bars[-1]["left"]
    words = f"{what} {percent} %"
    if left == "?":
        return Progress(words, None)
    return Progress(f"{words}, {left.removeprefix('0')} left", seconds_of(left))


def seconds_of(clock: str) -> float:
    """Convert `1:02:03` or `02:03` to seconds."""
    seconds = 0
    for part in clock.split(":"):
        seconds = 60 * seconds + int(part)
    return float(seconds)


class Seconds:
    """Seconds of each successful job, stored in a small JSON file between runs."""

    def __init__(self, path: Path | str) -> None:
        """Read the seconds of earlier runs from `path`; none if it is missing or invalid."""
        self.path = Path(path)
        self.by_key = read_seconds(self.path)
        self.before = means_by_rule(self.by_key)
        self.by_rule: dict[str, list[float]] = defaultdict(list)

    def keep(self, job: Job, seconds: float) -> None:
        """Store the seconds of a successful job."""
        self.by_key[job.key] = round(seconds, 3)
        self.by_rule[job.rule].append(seconds)
        # jobs report a full disk themselves; only the time estimate needs this file
        with suppress(TightropeError, OSError):
            write_json(self.path, self.by_key)

    def of_rule(self, rule: str) -> float | None:
        """Return the mean seconds of a rule's jobs in this run, else in earlier runs, else None."""
        known = self.by_rule.get(rule)
        return math.fsum(known) / len(known) if known else self.before.get(rule)

    def of_job(self, job: Job) -> float | None:
        """Return the seconds of this job in an earlier run, else the mean of its rule."""
        known = self.by_key.get(job.key)
        return self.of_rule(job.rule) if known is None else known


def means_by_rule(by_key: dict[str, float]) -> dict[str, float]:
    """Return the mean seconds of each rule's jobs."""
    rules: dict[str, list[float]] = defaultdict(list)
    for key, seconds in by_key.items():
        rules[key.split(" ", 1)[0]].append(seconds)
    return {rule: math.fsum(known) / len(known) for rule, known in rules.items()}


def read_seconds(path: Path) -> dict[str, float]:
    """Read the seconds by job from the file; empty if missing or invalid."""
    try:
        document = read_json(path, dict[str, Any])
    except TightropeError:
        return {}
    return {
        key: float(value)
        for key, value in document.items()
        if isinstance(value, int | float) and 0 <= value < math.inf
    }


class Run:
    """Planned, running and ended jobs of a run."""

    def __init__(self, seconds: Seconds) -> None:
        """Start a run without planned jobs; `seconds` holds job durations of earlier runs."""
        self.seconds = seconds
        self.planned: Counter[str] = Counter()
        self.waiting: list[Job] = []
        self.ended: Counter[str] = Counter()
        self.running: dict[int, Job] = {}
        self.failed = self.crashed = 0
        self.stopped = False
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

    def plan(self, jobs: Iterable[Job]) -> None:
        """Set the jobs of the run."""
        self.waiting = list(jobs)
        self.planned = Counter(job.rule for job in self.waiting)

    def start(self, number: int, job: Job) -> None:
        """Record the start of a job, first attempt or retry."""
        self.began = job.began if self.began is None else self.began
        self.running[number] = job
        planned = [one for one in self.waiting if one.key == job.key]
        planned += [one for one in self.waiting if one.rule == job.rule]
        if planned:
            self.waiting.remove(planned[0])

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
        self.waiting.append(job)

    def work_left(self, now: float) -> float | None:
        """Estimate the remaining seconds of all jobs, None if less than half of them are known."""
        running = list(self.running.values())
        told = [self.job_left(job, now) for job in running]
        told += [self.seconds.of_job(job) for job in self.waiting]
        known = [seconds for seconds in told if seconds is not None]
        if not known or 2 * len(known) < len(told):
            return None if told else 0.0
        # assume the mean of the known durations for the unknown ones
        return math.fsum(known) * len(told) / len(known)

    def seconds_left(self, now: float) -> float | None:
        """Estimate the seconds until all jobs have ended, None if too few durations are known."""
        left = self.work_left(now)
        return None if left is None else left / self.at_once(now)

    def share_done(self, now: float) -> float | None:
        """Estimate the share of the run that is done by the seconds of its jobs, None if unknown.

        A job in progress counts by its own progress, or by the seconds that it has run.
        """
        left = self.work_left(now)
        if left is None:
            return None
        done = self.spent(now)
        share = done / (done + left) if done + left > 0 else 0.0
        # a job may take longer than before
        return min(share, 0.99) if self.running or self.waiting else share

    def job_left(self, job: Job, now: float) -> float | None:
        """Estimate a job's remaining seconds from the bar in its log, else from earlier runs."""
        told = job.progress()
        if told is not None and told.left is not None:
            return told.left
        before = self.seconds.of_job(job)
        return None if before is None else max(0.0, before - (now - job.began))

    def spent(self, now: float) -> float:
        """Return the seconds of all jobs so far, added up over concurrent jobs."""
        return self.busy + sum(now - job.began for job in list(self.running.values()))

    def at_once(self, now: float) -> float:
        """Return the mean number of concurrent jobs so far, at least 1."""
        wall = now - self.began if self.began is not None else 0.0
        return max(1.0, self.spent(now) / wall) if wall > 0 else 1.0
