"""What the command lines of a comparison share: each error is one line, and exit code 2."""

import argparse
import sys
from collections.abc import Callable
from typing import NoReturn

from tightrope.errors import TightropeError

REFUSED = 2


class OneLineParser(argparse.ArgumentParser):
    """A parser whose errors are one line, as all others are."""

    def error(self, message: str) -> NoReturn:
        """Raise TightropeError."""
        raise TightropeError(f"{message}; --help says more")


def run(main: Callable[[list[str]], int]) -> NoReturn:
    """Exit with what `main` returns for the words of the command line, or REFUSED."""
    try:
        sys.exit(main(sys.argv[1:]))
    except TightropeError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(REFUSED)
