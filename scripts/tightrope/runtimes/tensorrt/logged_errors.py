"""The errors that TensorRT logs: the first says why a build failed, the exception often not."""

import logging

from tightrope.errors import WorkFailed, is_out_of_memory


class Errors(logging.Handler):
    """Log handler that collects error messages in order."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Store the message of `record`."""
        self.messages.append(record.getMessage())


def failed(errors: Errors, error: Exception) -> WorkFailed:
    """Return the failure with the first logged error, transient where memory ran out.

    Later errors in TensorRT's log are consequences of the first. Without any the reason is that of
    `error`.
    """
    words = [*errors.messages, str(error), type(error).__name__]
    lines = [line.strip() for word in words for line in word.splitlines() if line.strip()]
    full = any(is_out_of_memory(RuntimeError(line)) for line in lines)
    return WorkFailed(f"TensorRT: {lines[0][:300]}", transient=full)
