"""Errors that a person is meant to read: one line with the thing, the reason and the remedy."""

import difflib

# words of PyTorch, ONNX Runtime, TensorRT and CUDA for a GPU whose memory is full
OUT_OF_MEMORY = (
    *("out of memory", "out_of_memory", "outofmemory", "memoryallocation"),
    *("failed to allocate memory", "insufficient memory", "can't allocate memory"),
)


class TightropeError(Exception):
    """An expected failure; a job prints its one line and no traceback."""


class ConfigError(TightropeError):
    """The configuration asks for something that cannot be."""


class ArtifactError(TightropeError):
    """A file of a former step is missing, truncated or not the one that was written."""


class StorageError(TightropeError):
    """The disk is full or a folder cannot be written; no property of a variant."""


class WorkFailed(Exception):
    """The child gave no value; `transient` when another attempt may go well.

    `role` is the child's, and stands before its reason.
    """

    def __init__(self, reason: str, transient: bool, role: str = "") -> None:
        super().__init__(f"{role}{reason}")
        self.reason = f"{role}{reason}"
        self.transient = transient
        self.role = role


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of a runtime says that memory, most often that of the GPU, is full."""
    words = f"{type(error).__name__}: {error}".casefold()
    return any(word in words for word in OUT_OF_MEMORY)


def in_one_line(error: BaseException) -> str:
    """Kind and first line of an error, short enough for a table."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else "no message"
    return f"{type(error).__name__}: {text[:300]}"


def nearest(word: str, allowed: list[str]) -> str:
    """`; did you mean "x"?` where one of `allowed` is close to `word`, else nothing."""
    close = difflib.get_close_matches(word, allowed, n=1, cutoff=0.6)
    return f'; did you mean "{close[0]}"?' if close else ""
