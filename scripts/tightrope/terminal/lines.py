"""Styled lines that a run leaves on the terminal."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tightrope.durations import in_words
from tightrope.terminal.jobs import Job, Run

# maximum running jobs shown, so that the bar below them stays on the screen
MOST_RUNNING = 8
FOLLOWS = "input files updated by another job"
DONE, FAILED, PLAIN = "green", "bold red", ""


class Line(NamedTuple):
    """Line of text and the style that marks its outcome."""

    text: str
    style: str = PLAIN


def planned(run: Run) -> list[Line]:
    """Announce the number of jobs, and the time of a run if earlier runs tell it."""
    jobs = f"{run.total} job" + ("s" if run.total != 1 else "")
    left = run.seconds_left(0.0)
    if left is None:
        return [Line(jobs)]
    return [Line(f"{jobs}, about {in_words(left)}, estimated from earlier runs")]


def would_run(jobs: Iterable[tuple[Job, str]]) -> list[Line]:
    """Report what a dry run plans: for each rule its jobs, the first one, and Snakemake's reasons.

    That another job writes the inputs is told only where it is the only reason.
    """
    rules: dict[str, list[str]] = {}
    reasons: dict[str, dict[str, None]] = {}
    for job, reason in jobs:
        if job.rule == "all":
            continue
        rules.setdefault(job.words, []).append(job.subject)
        why = dict.fromkeys(one.partition(":")[0].lower() for one in reason.split("; "))
        if "forced execution" in why and not all(Path(path).exists() for path in job.outputs):
            why = {"missing output files": None}
        if len(why) > 1:
            why.pop(FOLLOWS, None)
        reasons.setdefault(job.words, {}).update(why)
    rows = [
        (str(len(named)), rule, named[0] + " …" * (len(named) > 1), ", ".join(reasons[rule]))
        for rule, named in rules.items()
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][1:3]
    count = sum(map(len, rules.values()))
    head = f"{count} job{'s' * (count != 1)} would run (--verbose: each, in Snakemake's words)"
    return [
        Line(head),
        *(
            Line(f"{number:>5}  {rule:<{widths[0]}}  {named:<{widths[1]}}  {why}".rstrip())
            for number, rule, named, why in rows
        ),
    ]


def ended(run: Run, job: Job, seconds: float, failure: str | None) -> list[Line]:
    """Report the end of a job, followed by the reason if its record is a failure."""
    line = job_line(run, job, seconds)
    if failure is None:
        return [Line(line, DONE)]
    return [Line(line, FAILED), Line(f"{margin(run)}failed: {failure}", FAILED)]


def crashed(run: Run, job: Job, seconds: float, reason: str) -> list[Line]:
    """Report a job that ended with an error: its line, the reason and the log path."""
    lines = [
        Line(job_line(run, job, seconds), FAILED),
        Line(f"{margin(run)}error: {reason}", FAILED),
    ]
    return lines + [Line(f"{margin(run)}log: {path}") for path in job.logs]


def closing(run: Run, now: float) -> list[Line]:
    """Report the outcome of a run's jobs."""
    if run.began is None:
        return []
    words = f"{run.done} of {run.total} jobs in {in_words(now - run.began)}"
    if run.failed:
        words += f", {run.failed} with a failed record"
    if run.crashed:
        words += f", {run.crashed} ended with an error: the run is not complete"
    return [Line(words, FAILED if run.crashed else PLAIN)]


def stopped(run: Run) -> list[Line]:
    """Report that the user has stopped the run, and how it goes on."""
    jobs = f" after {run.done} of {run.total} jobs" if run.total else ""
    return [Line(f"stopped{jobs}"), Line("To continue, run the same command.")]


def job_line(run: Run, job: Job, seconds: float) -> str:
    """Format an ended job: `[ 5/31]   6.2 s  measure latency    tiny/cpu-pytorch-fp32`."""
    width = len(str(run.total))
    return f"[{run.done:>{width}}/{run.total}] {facts_of(run, job, seconds)}"


def running_line(run: Run, job: Job, seconds: float) -> str:
    """Format a running job like `job_line`, with blanks in place of the count."""
    return f"{' ' * (2 * len(str(run.total)) + 3)} {facts_of(run, job, seconds)}"


def facts_of(run: Run, job: Job, seconds: float) -> str:
    """Format seconds, rule and subject, aligned with the other jobs."""
    width = max((len(rule) for rule in run.planned), default=0)
    return f"{in_words(seconds):>7}  {job.words:<{width}}  {job.subject}".rstrip()


def margin(run: Run) -> str:
    """Return blanks as wide as the columns before the rule."""
    return " " * (2 * len(str(run.total)) + 13)


def running_lines(run: Run, now: float, width: int) -> list[str]:
    """Format the longest-running jobs with their seconds and progress."""
    jobs = list(run.running.values())
    lines = []
    for job in jobs[:MOST_RUNNING]:
        line, told = running_line(run, job, now - job.began), how_far(run, job)
        fits = len(line) + 2 + len(told) <= width
        lines += [f"{line}  {told}".rstrip()] if fits else [line, margin(run) + told]
    more = len(jobs) - MOST_RUNNING
    return [*lines, f"and {more} more"] if more > 0 else lines


def how_far(run: Run, job: Job) -> str:
    """Return the progress of a job's step, else its earlier duration; empty if neither is known."""
    if (told := job.progress()) is not None:
        return told.words
    before = run.seconds.of_job(job)
    return "" if before is None else f"of about {in_words(before)}"


def progress_line(run: Run, now: float) -> list[Line]:
    """Report the longest-running job and the run, for output that is no terminal."""
    jobs = list(run.running.values())
    if not jobs:
        return []
    words = [running_line(run, jobs[0], now - jobs[0].began), how_far(run, jobs[0])]
    words += [f"and {len(jobs) - 1} more"] if len(jobs) > 1 else []
    return [Line("  ".join([*filter(None, words), f"({count_and_left(run, now)})"]))]


def count_and_left(run: Run, now: float) -> str:
    """Format how far a run is: `17/31 jobs, 40 %, about 1 min left`, in seconds if known."""
    left, share = run.seconds_left(now), run.share_done(now)
    words = f"{run.done}/{run.total} jobs"
    if left is None or share is None or left < 1:
        return words
    return f"{words}, {100 * share:.0f} %, about {in_words(left)} left"
