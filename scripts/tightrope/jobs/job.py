"""One way in for every script: a Snakemake job, or the same job typed by hand."""

import os
import sys
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import yaml

from tightrope.errors import TightropeError


def current_job(namespace: dict[str, Any]) -> Any:
    """The job in `namespace`, else one read from argv.

    Its log takes file descriptors 1 and 2, so what native code prints is kept;
    `job.terminal` is a text stream to where descriptor 2 went before. A TightropeError
    ends the script with its one line; other errors keep their traceback.
    """
    job = namespace.get("snakemake") or job_from_words(sys.argv[1:])
    job.terminal = os.fdopen(os.dup(2), "w", buffering=1)
    if job.log:
        log = os.open(job.log[0], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
    sys.excepthook = print_one_line
    return job


def print_one_line(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """Print an expected error as one line, any other with its traceback."""
    if issubclass(kind, TightropeError):
        print(f"error: {error}", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


def job_from_words(words: list[str]) -> SimpleNamespace:
    """Read `input.onnx=a.onnx output.onnx=b.onnx params.opset=21 log.0=job.log`."""
    sections: dict[str, Section] = defaultdict(Section)
    for word in words:
        field, _, value = word.partition("=")
        section, _, name = field.partition(".")
        setattr(sections[section], name, yaml.safe_load(value))
    log = [path for _, path in sections.pop("log", Section()).items()]
    return SimpleNamespace(**{"params": Section(), **sections, "log": log})


class Section(SimpleNamespace):
    """Named values of a job, read like Snakemake's."""

    def items(self) -> Any:
        """Pairs of name and value in the order in which they were given."""
        return vars(self).items()
