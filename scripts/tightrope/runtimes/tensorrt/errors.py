"""Report TensorRT's error for a failed build: Polygraphy's error says only that it failed."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from polygraphy.exception import PolygraphyException
from polygraphy.logger import G_LOGGER

from tightrope.errors import WorkFailed, is_out_of_memory


class Errors(logging.Handler):
    """Log handler that collects error messages in order."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Store the message of `record`."""
        self.messages.append(record.getMessage())


@contextmanager
def with_reasons() -> Iterator[None]:
    """Turn a failure of Polygraphy in this context into a WorkFailed with the first error."""
    G_LOGGER.use_python_logging_system = True
    G_LOGGER.letter = G_LOGGER.colors = False
    errors, log = Errors(), logging.StreamHandler()
    logger = logging.getLogger("Polygraphy")
    logger.handlers, logger.propagate = [errors, log], False
    try:
        yield
    except PolygraphyException as error:
        raise failed(errors, error) from error
    finally:
        logger.handlers = [log]


def failed(errors: Errors, error: Exception) -> WorkFailed:
    """Return the failure with the first logged error, transient where memory ran out.

    Later errors in TensorRT's log are consequences of the first. Without any the reason is that of
    `error`.
    """
    words = [*errors.messages, str(error), type(error).__name__]
    lines = [line.strip() for word in words for line in word.splitlines() if line.strip()]
    full = any(is_out_of_memory(RuntimeError(line)) for line in lines)
    return WorkFailed(f"TensorRT: {lines[0][:300]}", transient=full)
