"""Errors for the user: one line with subject, reason and remedy."""

import difflib
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Result = TypeVar("Result")

# out-of-memory messages of PyTorch, ONNX Runtime, TensorRT and CUDA
OUT_OF_MEMORY = (
    "out of memory",
    "out_of_memory",
    "outofmemory",
    "memoryallocation",
    "failed to allocate memory",
    "insufficient memory",
    "can't allocate memory",
)


# what a name or text of another's making must not send to a terminal: control characters, line
# breaks, changes of the direction of writing, halves of surrogate pairs
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
# characters of a line
LONGEST = 900


class TightropeError(Exception):
    """An expected failure; a job prints its single line without a traceback."""

    def __str__(self) -> str:
        """Return the line as a terminal may show it.

        Characters that control one are escapes. What is longer than LONGEST quotes something of
        another's making, and is shown without its middle.
        """
        line = printable(super().__str__())
        if len(line) <= LONGEST:
            return line
        return f"{line[: 2 * LONGEST // 3]} […] {line[-LONGEST // 4 :]}"


class ConfigError(TightropeError):
    """An invalid configuration."""


class ArtifactError(TightropeError):
    """A file of an earlier step is missing, truncated or changed."""


class StorageError(TightropeError):
    """The disk is full or a folder is not writable; unrelated to the variant."""


def or_exit(function: Callable[..., Result], *arguments: Any, **options: Any) -> Result:
    """Return what the function returns; end the process with one line on a TightropeError."""
    try:
        return function(*arguments, **options)
    except TightropeError as error:
        sys.exit(str(error))


class WorkFailed(Exception):
    """The child returned no value; `transient` when another attempt may succeed.

    `role` is that of the child, and prefixes the reason.
    """

    def __init__(self, reason: str, transient: bool, role: str = "") -> None:
        super().__init__(f"{role}{reason}")
        self.reason = f"{role}{reason}"
        self.transient = transient
        self.role = role


def printable(text: str) -> str:
    """Return the text with characters that control a terminal as escapes such as \\x1b."""
    return UNPRINTABLE.sub(lambda found: ascii(found[0])[1:-1], text)


@contextmanager
def in_foreign_files(what: str, remedy: str) -> Iterator[None]:
    """Turn whatever a library raises about files of another's making into one TightropeError.

    `what` names the files. Parsers written in Rust also panic, which is no Exception. What tells of
    this machine is passed on: too little memory, and an interruption.
    """
    try:
        yield
    except (TightropeError, WorkFailed, MemoryError):
        raise
    except BaseException as error:
        panic = type(error).__name__ == "PanicException"
        if not panic and not isinstance(error, Exception):
            raise
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise TightropeError(f"{what}: {reason}; {remedy}") from error


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether a runtime's error reports out-of-memory, usually of the GPU."""
    words = f"{type(error).__name__}: {error}".casefold()
    return any(word in words for word in OUT_OF_MEMORY)


def in_one_line(error: BaseException) -> str:
    """Return type and first line of an error, short enough for a table.

    A TightropeError says all by itself: without its type.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else "no message"
    if isinstance(error, TightropeError):
        return text
    return f"{type(error).__name__}: {text[:300]}"


def nearest(word: str, allowed: list[str]) -> str:
    """Return `; did you mean "x"?` where one of `allowed` is close to `word`, else ""."""
    close = difflib.get_close_matches(word, allowed, n=1, cutoff=0.6)
    return f'; did you mean "{close[0]}"?' if close else ""
