"""Errors for the user: one line with subject, reason and remedy."""

import difflib

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


class TightropeError(Exception):
    """An expected failure; a job prints its single line without a traceback."""


class ConfigError(TightropeError):
    """An invalid configuration."""


class ArtifactError(TightropeError):
    """A file of an earlier step is missing, truncated or changed."""


class StorageError(TightropeError):
    """The disk is full or a folder is not writable; unrelated to the variant."""


class WorkFailed(Exception):
    """The child returned no value; `transient` when another attempt may succeed.

    `role` is that of the child, and prefixes the reason.
    """

    def __init__(self, reason: str, transient: bool, role: str = "") -> None:
        super().__init__(f"{role}{reason}")
        self.reason = f"{role}{reason}"
        self.transient = transient
        self.role = role


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
