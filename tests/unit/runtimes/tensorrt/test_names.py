"""TensorRT's own words are spelt as TensorRT spells them, seen without TensorRT.

No machine without a GPU can run the engine, so a name that TensorRT 11 has dropped, or one that it
never had, would be found by the first person who has one.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tensorrt_names import names_in
from tightrope.runtimes.tensorrt import profiles

LIST = Path(__file__).parents[3] / "data" / "tensorrt-11-names.txt"
NAMES = {line for line in LIST.read_text().splitlines() if not line.startswith("#")}
# what a variable of that name is, in a module that works with TensorRT
CLASSES = {
    "logger": "trt.Logger",
    "runtime": "trt.Runtime",
    "engine": "trt.ICudaEngine",
    "context": "trt.IExecutionContext",
    "inspector": "trt.EngineInspector",
    "config": "trt.IBuilderConfig",
    "profile": "trt.IOptimizationProfile",
    "builder": "trt.Builder",
    "network": "trt.INetworkDefinition",
}
# a profile may be Polygraphy's or our own
OTHERS = {"profile": {"add", *dir(profiles.Profile)}}


class Wrong(NamedTuple):
    """A name that TensorRT does not have, and where it stands."""

    file: str
    line: int
    name: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: TensorRT 11 has no {self.name}"


def wrong_names(source: str, file: str) -> list[Wrong]:
    """The names of TensorRT in the source of a module that are not in the list, by line."""
    tree = ast.parse(source)
    imported = dict(imports(tree))
    found = [*wrong_chains(tree, imported)]
    if any(name.startswith(("tensorrt", "polygraphy.backend.trt")) for name in imported.values()):
        found += wrong_members(tree)
    return [Wrong(file, line, name) for line, name in sorted(found)]


def imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Each imported name of the module with what it stands for, as `a.b.c`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((one.asname or one.name, one.name) for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((one.asname or one.name, f"{node.module}.{one.name}") for one in node.names)


def wrong_chains(tree: ast.Module, imported: dict[str, str]) -> Iterator[tuple[int, str]]:
    """Line and name of each `trt.X.Y`, and of each name imported from tensorrt, not in the list."""
    inner = {node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "tensorrt":
            chains = [["trt", one.name] for one in node.names]
        elif isinstance(node, ast.Attribute) and node not in inner:
            first, *rest = chain(node)
            chains = [["trt", *rest]] if imported.get(first) == "tensorrt" else []
        else:
            continue
        for words in chains:
            if (name := unknown(words)) is not None:
                yield node.lineno, name


def chain(node: ast.Attribute) -> list[str]:
    """`["a", "b", "c"]` of `a.b.c`; begins with "" where it does not begin with a name."""
    words = [node.attr]
    while isinstance(node.value, ast.Attribute):
        node = node.value
        words.insert(0, node.attr)
    return [node.value.id if isinstance(node.value, ast.Name) else "", *words]


def unknown(words: list[str]) -> str | None:
    """The first part of `trt.X.Y` that is not in the list; a value's own attributes are free."""
    for end in range(2, len(words) + 1):
        name = ".".join(words[:end])
        if name not in NAMES:
            return name
        if not members(name):
            return None
    return None


def members(name: str) -> set[str]:
    """The names in that class, none where it is no class."""
    found = (one.removeprefix(f"{name}.") for one in NAMES if one.startswith(f"{name}."))
    return {one for one in found if "." not in one}


def wrong_members(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of each `engine.x` and the like that the class of such a variable lacks."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or node.attr.startswith("_"):
            continue
        owner = node.value
        word = getattr(owner, "id", None) or getattr(owner, "attr", None)
        if word in CLASSES and node.attr not in members(CLASSES[word]) | OTHERS.get(word, set()):
            yield node.lineno, f"{CLASSES[word]}.{node.attr} (of {word})"


def test_every_name_of_tensorrt_in_the_scripts_is_one_of_tensorrt_11(repository: Path) -> None:
    texts = {path: path.read_text() for path in (repository / "scripts").rglob("*.py")}
    used = {path: text for path, text in texts.items() if "tensorrt" in text or "trt" in text}
    wrong = [one for path, text in sorted(used.items()) for one in wrong_names(text, path.name)]
    assert used
    assert not wrong, "\n".join(map(str, wrong))


RIGHT = """
import tensorrt as trt

def build(path):
    logger = trt.Logger(trt.Logger.WARNING)
    config = trt.Builder(logger).create_builder_config()
    config.clear_flag(trt.BuilderFlag.TF32)
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, 1 << 30)
    print(trt.__version__, trt.DataType.HALF.name.lower(), trt.ILogger.Severity.ERROR)
    self.context.execute_async_v3(0)
"""
TRT = "import tensorrt as trt\n"
POLYGRAPHY = "from polygraphy.backend.trt import CreateConfig\n"


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (RIGHT, None),
        # variables of a module without TensorRT are its own
        ("engine.get_binding_shape(config.get('a'))\ntrt.nothing\n", None),
        (f"{TRT}config.set_flag(trt.BuilderFlag.FP16)", "trt.BuilderFlag.FP16"),
        (f"{TRT}print(trt.Logger.Severity.WORSE)", "trt.Logger.Severity.WORSE"),
        ("\nfrom tensorrt import QuantizationFlag", "trt.QuantizationFlag"),
        (
            f"{TRT}self.context.execute_async_v2(0)",
            "trt.IExecutionContext.execute_async_v2 (of context)",
        ),
        (f"{TRT}config.int8_calibrator = None", "trt.IBuilderConfig.int8_calibrator (of config)"),
        (f"{POLYGRAPHY}engine.max_batch_size", "trt.ICudaEngine.max_batch_size (of engine)"),
    ],
)
def test_a_wrong_name_is_found_with_its_file_and_line(source: str, name: str | None) -> None:
    expected = [] if name is None else [f"a.py:2: TensorRT 11 has no {name}"]
    assert list(map(str, wrong_names(source, "a.py"))) == expected


def test_what_tensorrt_11_has_dropped_is_not_in_the_list() -> None:
    flags = ["FP16", "BF16", "FP8", "INT8", "OBEY_PRECISION_CONSTRAINTS"]
    assert not NAMES & {f"trt.BuilderFlag.{flag}" for flag in flags}
    assert not NAMES & {
        "trt.IInt8EntropyCalibrator2",
        "trt.CalibrationAlgoType",
        "trt.IBuilderConfig.set_calibration_profile",
        "trt.ITensor.dynamic_range",
        "trt.ILayer.precision",
        "trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH",
        "trt.ICudaEngine.device_memory_size",
        "trt.IBuilderConfig.max_workspace_size",
    }


def test_a_class_is_listed_with_its_members_and_those_of_classes_in_it() -> None:
    class Outer:
        class Inner:
            value = 1

        def method(self) -> None: ...

        _hidden = 2

    names = ["trt.Outer", "trt.Outer.Inner", "trt.Outer.Inner.value", "trt.Outer.method"]
    assert list(names_in(Outer, "trt.Outer")) == names
