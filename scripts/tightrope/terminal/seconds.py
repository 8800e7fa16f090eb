"""Job durations, from earlier runs and this run."""

import math
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

from tightrope.artifacts.files import read_json, write_json
from tightrope.errors import TightropeError
from tightrope.terminal.jobs import Job


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
    return {key: float(value) for key, value in document.items() if is_seconds(value)}


def is_seconds(value: object) -> bool:
    """Return whether `value` is a valid duration in seconds."""
    return isinstance(value, int | float) and 0 <= value < math.inf
