"""TensorRT's own words are spelt as TensorRT spells them, seen without TensorRT.

No machine without a GPU can run the engine, so a name that TensorRT 11 has dropped, or one that it
never had, would be found by the first person who has one.
"""

import ast
import re
from pathlib import Path

import pytest
from tightrope.runtimes.shapes import Profile

LIST = Path(__file__).parents[3] / "data" / "tensorrt-11-names.txt"
NAMES = {line for line in LIST.read_text().splitlines() if not line.startswith("#")}
# what a variable of that name is, in a module that works with TensorRT
CLASSES = {
    **{"logger": "trt.Logger", "runtime": "trt.Runtime", "engine": "trt.ICudaEngine"},
    **{"context": "trt.IExecutionContext", "inspector": "trt.EngineInspector"},
    **{"config": "trt.IBuilderConfig", "profile": "trt.IOptimizationProfile"},
    **{"builder": "trt.Builder", "network": "trt.INetworkDefinition"},
}
IMPORTS = ast.Import | ast.ImportFrom
# a profile may be Polygraphy's or our own
OTHERS = {"profile": {"add", *dir(Profile)}}


def wrong_names(source: str, file: str) -> list[str]:
    """The names of TensorRT in the source of a module that are not in the list, with their lines.

    Attributes of a variable count where its name is in CLASSES and the module imports TensorRT.
    """
    tree = ast.parse(source)
    imports = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, IMPORTS)]
    uses = any(re.match("(import|from) (tensorrt|polygraphy.backend)", one) for one in imports)
    used: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "tensorrt":
            used += [(node.lineno, f"trt.{one.name}") for one in node.names]
        elif isinstance(node, ast.Attribute) and uses and not node.attr.startswith("_"):
            owner = ast.unparse(node.value)
            word = owner.rpartition(".")[2]
            if word in CLASSES and node.attr not in OTHERS.get(word, ()):
                used.append((node.lineno, f"{CLASSES[word]}.{node.attr}"))
            elif owner == "trt" or (owner in NAMES and is_class(owner)):
                used.append((node.lineno, f"{owner}.{node.attr}"))
    wrong = sorted(one for one in set(used) if one[1] not in NAMES)
    return [f"{file}:{line}: TensorRT 11 has no {name}" for line, name in wrong]


def is_class(name: str) -> bool:
    """Whether the list has names in it; a value's own attributes are free."""
    return any(one.startswith(f"{name}.") for one in NAMES)


def test_every_name_of_tensorrt_in_the_scripts_is_one_of_tensorrt_11(repository: Path) -> None:
    texts = {path: path.read_text() for path in (repository / "scripts").rglob("*.py")}
    used = {path: text for path, text in texts.items() if "tensorrt" in text or "trt" in text}
    assert used
    assert [one for path, text in used.items() for one in wrong_names(text, path.name)] == []


TRT = "import tensorrt as trt\n"


@pytest.mark.parametrize(
    ("source", "name"),
    [
        # variables of a module without TensorRT are its own
        ("engine.get_binding_shape(config.get('a'))\ntrt.nothing\n", None),
        (f"{TRT}config.set_flag(trt.BuilderFlag.FP16)", "trt.BuilderFlag.FP16"),
        ("\nfrom tensorrt import QuantizationFlag", "trt.QuantizationFlag"),
        (f"{TRT}self.context.execute_async_v2(0)", "trt.IExecutionContext.execute_async_v2"),
    ],
)
def test_a_wrong_name_is_found_with_its_file_and_line(source: str, name: str | None) -> None:
    expected = [] if name is None else [f"a.py:2: TensorRT 11 has no {name}"]
    assert wrong_names(source, "a.py") == expected
