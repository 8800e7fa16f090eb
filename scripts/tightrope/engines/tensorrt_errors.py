"""Why TensorRT fails: its own error for a build, another version, another GPU for a plan."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from polygraphy.exception import PolygraphyException
from polygraphy.logger import G_LOGGER

from tightrope.errors import WorkFailed, is_out_of_memory

NEEDED = 11


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


def require_version(found: str) -> None:
    """Raise WorkFailed where TensorRT `found`, such as 11.4.0.106, is older than NEEDED."""
    if int(found.partition(".")[0]) < NEEDED:
        raise WorkFailed(
            f"TensorRT {found} found, {NEEDED} needed: since {NEEDED} the ONNX file alone decides "
            "every type, flags for precisions and calibrators are gone; install what "
            "envs/gpu-tensorrt.txt names",
            transient=False,
        )


def require_same(built: dict[str, str], here: dict[str, str], options: dict[str, Any]) -> None:
    """Raise WorkFailed where a plan was built by another TensorRT or for another GPU.

    Both dicts have `tensorrt` (version) and `gpu` (model); `options` may allow a difference.
    """
    allowed = {
        "tensorrt": options["version_compatible"],
        "gpu": options["hardware_compatibility"] != "none",
    }
    other = [name for name in allowed if built[name] != here[name] and not allowed[name]]
    if other:
        raise WorkFailed(
            f"the plan was built by TensorRT {built['tensorrt']} for {built['gpu']}, here is "
            f"TensorRT {here['tensorrt']} on {here['gpu']}: delete the engine's folder, run again",
            transient=False,
        )
