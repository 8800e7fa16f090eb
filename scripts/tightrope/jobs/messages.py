"""Messages between a job and its child process."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Request:
    """Arguments of a call of the child's handler."""

    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Returned:
    """What the handler returned."""

    value: Any


@dataclass(frozen=True)
class Failed:
    """Why the handler failed, and whether another attempt may go well."""

    reason: str
    transient: bool


@dataclass(frozen=True)
class Raised:
    """An error of the environment, which ends the job."""

    error: Exception


Reply = Returned | Failed | Raised
