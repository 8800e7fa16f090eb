"""List the names of Torch-TensorRT that we use, with their parameters, from its wheel.

    pip download --no-deps --dest wheels torch-tensorrt==2.13.0
    python tests/support/torch_tensorrt_names.py wheels/*.whl > tests/data/torch-tensorrt-names.txt

The wheel's Python is read and not run: neither TensorRT nor a GPU is needed.
"""

import argparse
import ast
import zipfile
from collections.abc import Iterator
from pathlib import Path

# public name -> module of the wheel that defines it
PLACES = {
    "torch_tensorrt.dynamo.compile": "torch_tensorrt/dynamo/_compiler.py",
    "torch_tensorrt.dynamo.Debugger": "torch_tensorrt/dynamo/debug/_Debugger.py",
    "torch_tensorrt.dynamo.runtime.TorchTensorRTModule": (
        "torch_tensorrt/dynamo/runtime/_TorchTensorRTModule.py"
    ),
    "torch_tensorrt.load": "torch_tensorrt/_compile.py",
    "torch_tensorrt.runtime.set_cudagraphs_mode": "torch_tensorrt/runtime/_cudagraphs.py",
    "torch_tensorrt.save": "torch_tensorrt/_compile.py",
}
HEADER = """\
# Names of Torch-TensorRT and their parameters, read from
# {wheel}
# (package torch-tensorrt of PyPI) by tests/support/torch_tensorrt_names.py, which says how to do it
# again.
"""


def main() -> None:
    """Print the list."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    wheel = parser.parse_args().wheel
    with zipfile.ZipFile(wheel) as files:
        lines = [
            line
            for name, place in PLACES.items()
            for line in names_in(files.read(place).decode(), name)
        ]
    print(HEADER.format(wheel=wheel.name) + "\n".join(lines))


def names_in(source: str, name: str) -> Iterator[str]:
    """Yield `name`, and `name(parameter)` for each parameter of the function or class."""
    last = name.rpartition(".")[2]
    kinds = ast.FunctionDef | ast.ClassDef
    (found,) = [
        one for one in ast.parse(source).body if isinstance(one, kinds) and one.name == last
    ]
    yield name
    if isinstance(found, ast.ClassDef):
        (found,) = [
            one for one in found.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"
        ]
    arguments = [*found.args.args, *found.args.kwonlyargs]
    yield from (f"{name}({one.arg})" for one in arguments if one.arg != "self")


if __name__ == "__main__":
    main()
