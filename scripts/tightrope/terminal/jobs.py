"""Jobs of a run, how far they and the run are, the time left, and the lines that tell it."""

import math
import os
import re
import time
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from tightrope.artifacts.files import read_json, write_json
from tightrope.durations import in_words
from tightrope.errors import TightropeError

TAIL_BYTES = 4096
# a tqdm bar: `predicting:  40%|####      | 12/30 [00:08<00:12,  1.49chunk/s]`
BAR = re.compile(
    r"(?P<what>[^:\r\n|]+):\s+(?P<percent>\d+)%\|[^|]*\| *(?P<count>[\d.]+[kMG]?/[\d.]+[kMG]?)"
    r" \[[\d:]+<(?P<left>[\d:]+|\?)"
)
# maximum running jobs shown, so that the bar below them stays on the screen
MOST_RUNNING = 8
FOLLOWS = "input files updated by another job"
DONE, FAILED, PLAIN = "green", "bold red", ""


class Progress(NamedTuple):
    """Progress of a step in words, and the remaining seconds if known."""

    words: str
    left: float | None


def progress_in(path: Path | str, *, since: float = 0.0) -> Progress | None:
    """Return the progress from the last bar in the log: `predicting 40 %, 0:12 left`.

    None without a bar, for a full one (another step has begun), and for a log of before `since`.
    """
    try:
        with Path(path).open("rb") as stream:
            status = os.fstat(stream.fileno())
            stream.seek(max(0, status.st_size - TAIL_BYTES))
            tail = stream.read().decode(errors="replace")
    except OSError:
        return None
    bars = list(BAR.finditer(tail))
    if status.st_mtime < since or not bars or bars[-1]["percent"] == "100":
        return None
    left = bars[-1]["left"]
    words = f"{bars[-1]['what'].strip()} {bars[-1]['percent']} %"
    if left == "?":
        return Progress(words, None)
    seconds = sum(60**power * int(part) for power, part in enumerate(left.split(":")[::-1]))
    return Progress(f"{words}, {left.removeprefix('0')} left", float(seconds))


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

    @property
    def key(self) -> str:
        """Key under which the job's seconds are stored."""
        return f"{self.rule} {self.subject}".strip()

    def progress(self) -> Progress | None:
        """Return the progress of the job's step from its logs, None if they show none."""
        began = time.time() - (time.monotonic() - self.began)
        told = (progress_in(path, since=began) for path in self.logs)
        return next((one for one in told if one is not None), None)


def job_of(event: Mapping[str, Any], began: float, untrained: Container[str] = ()) -> Job:
    """Return the job that a job-start event describes; these models are `untrained`."""
    rule, wildcards = event["rule_name"], event["wildcards"]
    outputs, logs = list(event["output"]), list(event["log"])
    trained = rule != "train_model" or wildcards["model"] not in untrained
    return Job(rule, subject_of(rule, wildcards), outputs, logs, began, trained)


def subject_of(rule: str, wildcards: Mapping[str, str]) -> str:
    """Return model and variant, then the other wildcards that distinguish the rule's jobs."""
    rest = dict(wildcards)
    model, variant = rest.pop("model", ""), rest.pop("variant", "")
    if not variant and {"device", "rest"} <= rest.keys():
        engine = rule.removeprefix("build_")
        variant = f"{rest.pop('device')}-{engine}-{rest.pop('rest')}"
    others = "-".join(str(value) for value in rest.values())
    if not variant:
        return "/".join(filter(None, (model, others)))
    return f"{'/'.join(filter(None, (model, variant)))} {others}".strip()


class Seconds:
    """Seconds of each successful job, stored in a small JSON file between runs."""

    def __init__(self, path: Path | str) -> None:
        """Read the seconds of earlier runs from `path`; none if it is missing or invalid."""
        from msgspec import Meta

        self.path = Path(path)
        self.by_key: dict[str, float] = {}
        with suppress(TightropeError):
            self.by_key = read_json(self.path, dict[str, Annotated[float, Meta(ge=0)]])
        self.before: dict[str, list[float]] = defaultdict(list)
        for key, seconds in self.by_key.items():
            self.before[key.partition(" ")[0]].append(seconds)
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
        known = self.by_rule.get(rule) or self.before.get(rule)
        return math.fsum(known) / len(known) if known else None

    def of_job(self, job: Job) -> float | None:
        """Return the seconds of this job in an earlier run, else the mean of its rule."""
        return self.by_key.get(job.key, self.of_rule(job.rule))


class Run:
    """Planned, running and ended jobs of a run."""

    def __init__(self, seconds: Seconds) -> None:
        """Start a run without planned jobs; `seconds` holds job durations of earlier runs."""
        self.seconds = seconds
        self.planned: Counter[str] = Counter()
        self.waiting: list[Job] = []
        self.running: dict[int, Job] = {}
        self.done = self.failed = self.crashed = 0
        self.stopped = False
        self.reasons: list[str] = []
        self.began: float | None = None
        self.busy = 0.0

    @property
    def total(self) -> int:
        """Number of jobs in the run."""
        return self.planned.total()

    def plan(self, jobs: Iterable[Job]) -> None:
        """Set the jobs of the run."""
        self.waiting = list(jobs)
        self.planned = Counter(job.rule for job in self.waiting)

    def start(self, number: int, job: Job) -> None:
        """Record the start of a job, first attempt or retry."""
        self.began = job.began if self.began is None else self.began
        self.running[number] = job
        alike = [one for one in self.waiting if one.rule == job.rule]
        if alike:
            self.waiting.remove(next((one for one in alike if one.key == job.key), alike[0]))

    def end(self, number: int, now: float) -> tuple[Job, float] | None:
        """Return an ended job and its seconds, None if its start was not seen."""
        if (job := self.running.pop(number, None)) is None:
            return None
        self.done += 1  # failed ones included
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
        self.done -= 1
        self.crashed -= 1
        self.waiting.append(job)

    def work_left(self, now: float) -> float | None:
        """Estimate the remaining seconds of all jobs, None if less than half of them are known."""
        told = [self.job_left(job, now) for job in list(self.running.values())]
        told += [self.seconds.of_job(job) for job in self.waiting]
        known = [seconds for seconds in told if seconds is not None]
        if not known or 2 * len(known) < len(told):
            return None if told else 0.0
        # assume the mean of the known durations for the unknown ones
        return math.fsum(known) * len(told) / len(known)

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

    def seconds_left(self, now: float) -> float | None:
        """Estimate the seconds until all jobs have ended, None if too few durations are known."""
        left = self.work_left(now)
        wall = now - self.began if self.began is not None else 0.0
        at_once = self.spent(now) / wall if wall > 0 else 1.0  # the mean number of running jobs
        return None if left is None else left / max(1.0, at_once)

    def share_done(self, now: float) -> float | None:
        """Estimate the share of the run that is done by the seconds of its jobs, if known."""
        left, done = self.work_left(now), self.spent(now)
        if left is None:
            return None
        share = done / (done + left) if done + left > 0 else 0.0
        # a job may take longer than before
        return min(share, 0.99) if self.running or self.waiting else share


class Line(NamedTuple):
    """Line of text and the style that marks its outcome."""

    text: str
    style: str = PLAIN


def planned(run: Run) -> list[Line]:
    """Announce the number of jobs, and the time of a run if earlier runs tell it."""
    jobs, left = f"{run.total} job" + "s" * (run.total != 1), run.seconds_left(0.0)
    about = "" if left is None else f", about {in_words(left)}, estimated from earlier runs"
    return [Line(f"{jobs}{about}")]


def would_run(jobs: Iterable[tuple[Job, str]]) -> list[Line]:
    """Report what a dry run plans: for each rule its jobs, the first one, and Snakemake's reasons.

    That another job writes the inputs is told only where it is the only reason.
    """
    rules: dict[str, list[str]] = defaultdict(list)
    reasons: dict[str, dict[str, None]] = defaultdict(dict)
    for job, reason in jobs:
        if job.rule == "all":
            continue
        rules[job.words].append(job.subject)
        why = dict.fromkeys(one.partition(":")[0].lower() for one in reason.split("; "))
        if "forced execution" in why and not all(Path(path).exists() for path in job.outputs):
            why = {"missing output files": None}
        if len(why) > 1:
            why.pop(FOLLOWS, None)
        reasons[job.words].update(why)
    rows = [
        (str(len(named)), rule, named[0] + " …" * (len(named) > 1), ", ".join(reasons[rule]))
        for rule, named in rules.items()
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][1:3]
    count = sum(map(len, rules.values()))
    head = f"{count} job{'s' * (count != 1)} would run (--verbose: each, in Snakemake's words)"
    table = (
        f"{number:>5}  {rule:<{widths[0]}}  {named:<{widths[1]}}  {why}".rstrip()
        for number, rule, named, why in rows
    )
    return [Line(head), *map(Line, table)]


def ended(
    run: Run, job: Job, seconds: float, reason: str | None = None, *, crashed: bool = False
) -> list[Line]:
    """Report the end of a job: `[ 5/31]   6.2 s  measure latency    tiny/cpu-pytorch-fp32`.

    The reason follows if its record is a failure, with the path of its log if it `crashed`.
    """
    line = f"[{run.done:>{len(str(run.total))}}/{run.total}] {facts_of(run, job, seconds)}"
    if reason is None:
        return [Line(line, DONE)]
    words = "error" if crashed else "failed"
    lines = [Line(line, FAILED), Line(f"{margin(run)}{words}: {reason}", FAILED)]
    return lines + [Line(f"{margin(run)}log: {path}") for path in job.logs if crashed]


def closing(run: Run, now: float) -> list[Line]:
    """Report the outcome of a run's jobs, or that the user has stopped it and how it goes on."""
    if run.stopped:
        jobs = f" after {run.done} of {run.total} jobs" if run.total else ""
        return [Line(f"stopped{jobs}"), Line("To continue, run the same command.")]
    if run.began is None:
        return []
    words = f"{run.done} of {run.total} jobs in {in_words(now - run.began)}"
    if run.failed:
        words += f", {run.failed} with a failed record"
    if run.crashed:
        words += f", {run.crashed} ended with an error: the run is not complete"
    return [Line(words, FAILED if run.crashed else PLAIN)]


def facts_of(run: Run, job: Job, seconds: float) -> str:
    """Format seconds, rule and subject, aligned with the other jobs."""
    width = max(map(len, run.planned), default=0)
    return f"{in_words(seconds):>7}  {job.words:<{width}}  {job.subject}".rstrip()


def margin(run: Run, count: int = 13) -> str:
    """Return blanks as wide as the columns before the rule, or before the seconds with 4."""
    return " " * (2 * len(str(run.total)) + count)


def running(run: Run, job: Job, now: float) -> tuple[str, str]:
    """Return the line of a running job, and how far it is by its step or its earlier duration."""
    line = margin(run, 4) + facts_of(run, job, now - job.began)
    told, before = job.progress(), run.seconds.of_job(job)
    if told is not None:
        return line, told.words
    return line, "" if before is None else f"of about {in_words(before)}"


def running_lines(run: Run, now: float, width: int) -> list[str]:
    """Format the longest-running jobs with their seconds and progress."""
    jobs, lines = list(run.running.values()), []
    for line, told in (running(run, job, now) for job in jobs[:MOST_RUNNING]):
        fits = len(line) + 2 + len(told) <= width
        lines += [f"{line}  {told}".rstrip()] if fits else [line, margin(run) + told]
    more = len(jobs) - MOST_RUNNING
    return [*lines, f"and {more} more"] if more > 0 else lines


def progress_line(run: Run, now: float) -> list[Line]:
    """Report the longest-running job and the run, for output that is no terminal."""
    jobs = list(run.running.values())
    if not jobs:
        return []
    more = f"and {len(jobs) - 1} more" if len(jobs) > 1 else ""
    words = (*running(run, jobs[0], now), more, f"({count_and_left(run, now)})")
    return [Line("  ".join(filter(None, words)))]


def count_and_left(run: Run, now: float) -> str:
    """Format how far a run is: `17/31 jobs, 40 %, about 1 min left`, in seconds if known."""
    left, share = run.seconds_left(now), run.share_done(now)
    words = f"{run.done}/{run.total} jobs"
    if left is None or share is None or left < 1:
        return words
    return f"{words}, {100 * share:.0f} %, about {in_words(left)} left"
