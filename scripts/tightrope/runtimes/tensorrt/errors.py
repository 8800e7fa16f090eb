"""What TensorRT said when a build failed: Polygraphy's own error only says that it did."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from polygraphy.exception import PolygraphyException
from polygraphy.logger import G_LOGGER

from tightrope.errors import WorkFailed, is_out_of_memory


class Errors(logging.Handler):
    """Keeps the messages of errors, in their order."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the message of `record`."""
        self.messages.append(record.getMessage())


@contextmanager
def with_reasons() -> Iterator[None]:
    """In this context a failure of Polygraphy is a WorkFailed with the first error that was logged.

    What follows the first error in TensorRT's log follows from it.
    """
    G_LOGGER.use_python_logging_system = True
    G_LOGGER.letter = G_LOGGER.colors = False
    errors, log = Errors(), logging.StreamHandler()
    logger = logging.getLogger("Polygraphy")
    logger.handlers, logger.propagate = [errors, log], False
    try:
        yield
    except PolygraphyException as error:
        words = [*errors.messages, str(error)]
        lines = [line.strip() for word in words for line in word.splitlines() if line.strip()]
        full = any(is_out_of_memory(RuntimeError(line)) for line in lines)
        raise WorkFailed(f"TensorRT: {lines[0][:300]}", transient=full) from error
    finally:
        logger.handlers = [log]
