"""Requirements for compiling generated code, besides the Python packages."""

import os
import shutil
import sysconfig
from pathlib import Path


def missing_compiler() -> str | None:
    """Return what is missing to compile C++ for this Python and how to install it, else None."""
    # the compiler that PyTorch's Inductor looks for
    compiler = os.environ.get("CXX", "g++")
    if not shutil.which(compiler):
        return (
            f"no C++ compiler: install g++ (Debian: apt-get install g++), or name one in CXX; "
            f"there is no {compiler}"
        )
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        return "no Python.h: install the headers of Python (Debian: apt-get install python3-dev)"
    return None
