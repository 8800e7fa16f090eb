"""Report TensorRT's error for a failed build: Polygraphy's error says only that it failed."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from polygraphy.exception import PolygraphyException
from polygraphy.logger import G_LOGGER

from tightrope.runtimes.tensorrt.logged_errors import Errors, failed


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
