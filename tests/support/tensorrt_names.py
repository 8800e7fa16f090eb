"""List the public names of TensorRT's Python module from the wheel of its bindings.

    pip download --no-deps --dest wheels tensorrt-cu13-bindings==11.4.0.106
    python tests/support/tensorrt_names.py wheels/*.whl > tests/data/tensorrt-11-names.txt

The Python of the wheel's tag (cp311), a C compiler and Linux are needed, TensorRT and a GPU are
not: the extension is imported beside libraries of TensorRT's names in which nothing works, which
is enough to ask pybind11 for its classes.
"""

import argparse
import importlib
import inspect
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGE = "tensorrt_bindings"
# what the extension is linked to, and looks for beside itself
LIBRARIES = ("libnvinfer.so.11", "libnvinfer_plugin.so.11", "libnvonnxparser.so.11")
# the functions of them that it wants to be there when it is loaded; none of them is called
FUNCTIONS = (
    "createInferBuilder_INTERNAL",
    "createInferRefitter_INTERNAL",
    "createInferRuntime_INTERNAL",
    "createNvOnnxParserRefitter_INTERNAL",
    "createNvOnnxParser_INTERNAL",
    "getBuilderPluginRegistry",
    "getNvOnnxParserVersion",
    "getPluginRegistry",
    "initLibNvInferPlugins",
)
# what the package adds to the extension in Python
ADDED = ("__version__", "nptype", "volume")
HEADER = """\
# Public names of TensorRT's Python module: classes, enum values, methods, properties, functions.
# Read from {wheel}
# (package tensorrt-cu13-bindings of PyPI): what pybind11 registers when tensorrt.so is imported,
# and what __init__.py adds. Made by tests/support/tensorrt_names.py, which says how to do it again.
"""


def main() -> None:
    """Print the list."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    wheel = parser.parse_args().wheel
    with tempfile.TemporaryDirectory() as folder:
        names = sorted(names_of(imported(wheel, Path(folder))))
    print(HEADER.format(wheel=wheel.name) + "\n".join(names))


def imported(wheel: Path, folder: Path) -> ModuleType:
    """The package of the wheel, unpacked into `folder` and imported without TensorRT."""
    zipfile.ZipFile(wheel).extractall(folder)
    source = "".join(f"void *{name}(void) {{ return 0; }}" for name in FUNCTIONS)
    for name in LIBRARIES:
        words = ["cc", "-shared", "-fPIC", "-xc", "-", "-o", str(folder / PACKAGE / name)]
        subprocess.run(words, input=source, text=True, check=True)
    sys.path.insert(0, str(folder))
    return importlib.import_module(PACKAGE)


def names_of(package: ModuleType) -> Iterator[str]:
    """`trt.X` for each public name, and `trt.X.Y` for each of a class."""
    extension = importlib.import_module(f"{PACKAGE}.tensorrt")
    for name in (*public(extension), *ADDED):
        yield from names_in(getattr(package, name), f"trt.{name}")


def names_in(thing: Any, name: str) -> Iterator[str]:
    """`name` itself, and where it is a class its members and those of classes in it."""
    yield name
    if not inspect.isclass(thing):
        return
    for member in public(thing):
        yield from names_in(getattr(thing, member), f"{name}.{member}")


def public(thing: Any) -> list[str]:
    """The names in `thing` that do not begin with an underscore."""
    return [name for name in dir(thing) if not name.startswith("_")]


if __name__ == "__main__":
    main()
