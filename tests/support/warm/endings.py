"""The end of a fork that was a program."""

import atexit
import os
import sys
import threading
from collections.abc import Callable
from typing import NoReturn


def end_as(program: Callable[[], object]) -> NoReturn:
    """Run the program and end this process with its exit code, as Python does.

    But for what would take half a second: no module that the fork shares is taken apart.
    """
    code: object = None
    try:
        program()
    except SystemExit as error:
        code = error.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()  # waits for the threads that are no daemons
    atexit._run_exitfuncs()
    if isinstance(code, str):
        print(code, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))
