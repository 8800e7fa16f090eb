"""Access to the Hugging Face Hub; fails fast without a network."""

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tightrope.errors import ConfigError, TightropeError

SECONDS_TO_ANSWER = 5


class Repository(NamedTuple):
    """Repository on the Hub, its configuration, and the requested revision."""

    name: str
    configuration: str | None
    revision: str | None


def parse_repository(source: str, location: str) -> Repository:
    """Parse `owner/name[/configuration][@revision]`; raise ConfigError naming `source`."""
    path, _, revision = location.partition("@")
    parts = path.split("/")
    if len(parts) > 3 or not all(parts):
        raise ConfigError(f"{source}: a hub source is hub:owner/name@revision")
    configuration = parts[2] if len(parts) == 3 else None
    return Repository("/".join(parts[:2]), configuration, revision or None)


def check_reachable(source: str, remedy: str) -> None:
    """Raise TightropeError with `remedy` if the Hub does not answer within seconds."""
    from huggingface_hub.constants import ENDPOINT

    reason = [f"no answer within {SECONDS_TO_ANSWER} s"]

    def connect() -> None:
        try:
            urllib.request.urlopen(ENDPOINT, timeout=SECONDS_TO_ANSWER).close()
            reason.clear()
        except urllib.error.HTTPError:
            reason.clear()
        except OSError as error:
            reason[:] = [str(getattr(error, "reason", error))]

    # If a name server does not answer, the call blocks longer than its timeout.
    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(2 * SECONDS_TO_ANSWER)
    if reason:
        raise TightropeError(f"{source}: {ENDPOINT} could not be reached ({reason[0]}); {remedy}")


@contextmanager
def fetching(source: str, remedy: str) -> Iterator[None]:
    """Turn any exception of the Hub's libraries into a one-line TightropeError with `remedy`.

    Raises one at once if the Hub does not answer within seconds.
    """
    check_reachable(source, remedy)
    try:
        yield
    except Exception as error:
        reason = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
        raise TightropeError(f"{source}: could not be fetched ({reason}); {remedy}") from error
