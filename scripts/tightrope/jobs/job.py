"""Entry point of every script: a Snakemake job, or the same job from the command line."""

import os
import signal
import sys
from collections import defaultdict
from types import FrameType, SimpleNamespace
from typing import Any

import yaml

from tightrope.artifacts.content import MADE_WITH, made_with
from tightrope.artifacts.failures import known_reasons, reason_of
from tightrope.artifacts.files import full_disk
from tightrope.artifacts.packs import with_packs
from tightrope.errors import TightropeError


def current_job(namespace: dict[str, Any]) -> Any:
    """Return the job in `namespace`, else parse one from argv.

    `job.settings` has the values of `job.params.settings` as attributes, and `items()`.
    File descriptors 1 and 2 are redirected to the job's log, which keeps output of native code;
    `job.terminal` is a text stream to the former descriptor 2. A TightropeError ends the script
    with one line; other errors keep their traceback. SIGTERM ends it like `sys.exit`, so that
    child processes and temporary files do not stay. Packs among the inputs are unpacked, and those
    among the outputs written when the script ends.
    """
    job = namespace.get("snakemake") or job_from_words(sys.argv[1:])
    job.settings = Section(**dict(job.params.items()).get("settings", {}))
    job.terminal = os.fdopen(os.dup(2), "w", buffering=1)
    if job.log:
        # what it wrote before it ended stays
        begin = os.O_APPEND if known_reasons() and reason_of(job) else os.O_TRUNC
        log = os.open(job.log[0], os.O_WRONLY | os.O_CREAT | begin, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        # a child that is killed when it has answered, or a job that is, loses no line
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.excepthook = print_one_line
    signal.signal(signal.SIGTERM, end_job)
    with_packs(job)
    os.environ[MADE_WITH] = made_with(job)
    return job


def end_job(number: int, frame: FrameType | None) -> None:
    """Exit with the code of a process that the signal killed; ignore another one meanwhile."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def print_one_line(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """Print an expected error, or a full disk, as one line, any other with its traceback."""
    if isinstance(error, OSError):
        error = full_disk(error) or error
    if isinstance(error, TightropeError):
        print(f"error: {error}", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


def job_from_words(words: list[str]) -> SimpleNamespace:
    """Parse `input.onnx=a.onnx output.onnx=b.onnx params.opset=21 log.0=job.log`."""
    sections: dict[str, Section] = defaultdict(Section)
    for word in words:
        field, _, value = word.partition("=")
        section, _, name = field.partition(".")
        setattr(sections[section], name, yaml.safe_load(value))
    log = [path for _, path in sections.pop("log", Section()).items()]
    return SimpleNamespace(**{"params": Section(), "input": Section(), **sections, "log": log})


class Section(SimpleNamespace):
    """Named values of a job with Snakemake's interface."""

    def items(self) -> Any:
        """Return pairs of name and value in the given order."""
        return vars(self).items()
