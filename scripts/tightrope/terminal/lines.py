"""The lines that a run leaves on the terminal, each with its style."""

from typing import NamedTuple

from tightrope.durations import in_words
from tightrope.terminal.jobs import Job
from tightrope.terminal.run import Run

# running jobs that are shown, so that the bar below them stays on the screen
MOST_RUNNING = 8
DONE, FAILED, PLAIN = "green", "bold red", ""


class Line(NamedTuple):
    """A line of text and the style of its part that stands for how it went."""

    text: str
    style: str = PLAIN


def planned(run: Run) -> list[Line]:
    """What a run is about to do."""
    jobs = f"{run.total} job" + ("s" if run.total != 1 else "")
    left = run.seconds_left(0.0)
    return [Line(jobs if left is None else f"{jobs}, about {in_words(left)}")]


def ended(run: Run, job: Job, seconds: float, failure: str | None) -> list[Line]:
    """How a job ended: its line, and below it the reason of a failed record."""
    line = job_line(run, job, seconds)
    if failure is None:
        return [Line(line, DONE)]
    return [Line(line, FAILED), Line(f"{margin(run)}failed: {failure}", FAILED)]


def crashed(run: Run, job: Job, seconds: float, reason: str) -> list[Line]:
    """How a job ended with an error: its line, the reason, and where its log is."""
    lines = [
        Line(job_line(run, job, seconds), FAILED),
        Line(f"{margin(run)}error: {reason}", FAILED),
    ]
    return lines + [Line(f"{margin(run)}log: {path}") for path in job.logs]


def closing(run: Run, now: float) -> list[Line]:
    """What came of the jobs of a run."""
    if run.began is None:
        return []
    words = f"{run.done} of {run.total} jobs in {in_words(now - run.began)}"
    if run.failed:
        words += f", {run.failed} with a failed record"
    if run.crashed:
        words += f", {run.crashed} ended with an error: the run is not complete"
    return [Line(words, FAILED if run.crashed else PLAIN)]


def job_line(run: Run, job: Job, seconds: float) -> str:
    """`[ 5/31]   6.2 s  measure latency    tiny/cpu-pytorch-fp32`."""
    width = len(str(run.total))
    return f"[{run.done:>{width}}/{run.total}] {facts_of(run, job, seconds)}"


def running_line(run: Run, job: Job, seconds: float) -> str:
    """The same of a job that has not ended: blanks in place of the count."""
    return f"{' ' * (2 * len(str(run.total)) + 3)} {facts_of(run, job, seconds)}"


def facts_of(run: Run, job: Job, seconds: float) -> str:
    """Seconds, rule and subject, below those of the other jobs."""
    width = max((len(rule) for rule in run.planned), default=0)
    return f"{in_words(seconds):>7}  {job.words:<{width}}  {job.subject}".rstrip()


def margin(run: Run) -> str:
    """Blanks as wide as what stands before the rule in a line."""
    return " " * (2 * len(str(run.total)) + 13)


def running_lines(run: Run, now: float, width: int) -> list[str]:
    """The jobs that have run longest, each with its seconds and how far it is."""
    jobs = list(run.running.values())
    lines = []
    for job in jobs[:MOST_RUNNING]:
        line, told = running_line(run, job, now - job.began), how_far(run, job)
        fits = len(line) + 2 + len(told) <= width
        lines += [f"{line}  {told}".rstrip()] if fits else [line, margin(run) + told]
    more = len(jobs) - MOST_RUNNING
    return [*lines, f"and {more} more"] if more > 0 else lines


def how_far(run: Run, job: Job) -> str:
    """How far its step is, else how long it took before; empty where neither is known."""
    if (told := job.progress()) is not None:
        return told.words
    before = run.seconds.of_job(job)
    return "" if before is None else f"of about {in_words(before)}"


def count_and_left(run: Run, now: float) -> str:
    """`17/31 jobs, about 1 min left`."""
    left = run.seconds_left(now)
    words = f"{run.done}/{run.total} jobs"
    return words if left is None or left < 1 else f"{words}, about {in_words(left)} left"
