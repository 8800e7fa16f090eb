"""How long jobs take, from earlier runs and from this one."""

import json
import math
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

from tightrope.artifacts.files import write_json
from tightrope.errors import TightropeError
from tightrope.terminal.jobs import Job


class Seconds:
    """Seconds of each job that went well, kept in a small JSON file from run to run."""

    def __init__(self, path: Path | str) -> None:
        """Read what earlier runs left at `path`; nothing where it is missing or broken."""
        self.path = Path(path)
        self.by_key = read_seconds(self.path)
        self.by_rule: dict[str, list[float]] = defaultdict(list)

    def keep(self, job: Job, seconds: float) -> None:
        """Add the seconds of a job that went well."""
        self.by_key[job.key] = round(seconds, 3)
        self.by_rule[job.rule].append(seconds)
        # a full disk is told by the jobs; without this file only the estimate is missing
        with suppress(TightropeError, OSError):
            write_json(self.path, self.by_key)

    def of_rule(self, rule: str) -> float | None:
        """Mean seconds of the rule's jobs in this run, else in earlier ones, None where unknown."""
        known = self.by_rule.get(rule) or [
            seconds for key, seconds in self.by_key.items() if key.split(" ", 1)[0] == rule
        ]
        return math.fsum(known) / len(known) if known else None

    def of_job(self, job: Job) -> float | None:
        """Seconds of this very job in an earlier run, else those of its rule."""
        return self.by_key.get(job.key, self.of_rule(job.rule))


def read_seconds(path: Path) -> dict[str, float]:
    """The seconds by job in the file; empty where it holds none."""
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(document, dict):
        return {}
    return {key: float(value) for key, value in document.items() if is_seconds(value)}


def is_seconds(value: object) -> bool:
    """Whether `value` is a number of seconds that a job can have taken."""
    return isinstance(value, int | float) and 0 <= value < math.inf
