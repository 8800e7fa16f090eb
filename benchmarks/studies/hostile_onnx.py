"""ONNX files of another's making: other files as weights, loops without an end, foreign code."""

import os
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hostile_cases import ONNX, Case, Sandbox
from hostile_checkpoints import Evil
from onnx import TensorProto, helper

IDS = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "sequence"])
MASK = helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch", "sequence"])
LOGITS = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 2])
ENDLESS = 2**62
Make = Callable[[Sandbox, Path], object]


def constant(name: str, values: Any, kind: int = TensorProto.FLOAT, dims: Any = None) -> Any:
    """Return a tensor."""
    return helper.make_tensor(name, kind, dims or [len(values)], values)


def external(location: str, name: str = "w", dims: Sequence[int] = (2,)) -> Any:
    """Return a tensor whose values are in another file."""
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=dims)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "0"), ("length", "8")):
        tensor.external_data.add(key=key, value=value)
    return tensor


def model(nodes: Sequence[Any] = (), tensors: Sequence[Any] = (), **options: Any) -> Any:
    """Return a model of texts: logits from an embedding of their tokens, and these nodes."""
    table = constant("table", [0.1] * 100, dims=[50, 2])
    axes = constant("axes", [1], TensorProto.INT64)
    own = [
        helper.make_node("Gather", ["table", "input_ids"], ["embedded"]),
        helper.make_node("ReduceMean", ["embedded", "axes"], ["mean"], keepdims=0),
        helper.make_node("Identity", [options.pop("last", "mean")], ["logits"]),
    ]
    graph = helper.make_graph(
        [*own[:2], *nodes, own[2]], "g", [IDS, MASK], [LOGITS], [table, axes, *tensors]
    )
    opsets = [helper.make_opsetid("", 18), *options.pop("opsets", ())]
    # that of an older exporter: ONNX Runtime refuses what is newer than itself
    return helper.make_model(graph, opset_imports=opsets, **{"ir_version": 10, **options})


def added(name: str) -> Any:
    """Return the node that adds a value to the logits."""
    return helper.make_node("Add", ["mean", name], ["sum"])


def case(name: str, make: Callable[[Sandbox], Any], *named: str, harmless: bool = False) -> Case:
    """Return a case of an ONNX file."""

    def write(sandbox: Sandbox) -> dict[str, Any]:
        made = make(sandbox)
        target = sandbox / "own/model.onnx"
        if isinstance(made, bytes):
            target.write_bytes(made)
        elif made is not None:
            target.write_bytes(made.SerializeToString())
        return {"checkpoint": "onnx:own/model.onnx"}

    return Case(name, write, named or ("own/model.onnx", "model.onnx"), ONNX, harmless)


def weights_of(location: str) -> Callable[[Sandbox], Any]:
    """Return a model whose weights are in that file."""
    return lambda sandbox: model([added("w")], [external(location)], last="sum")


def in_branch(sandbox: Sandbox) -> Any:
    """Return a model with external data in both branches of an If."""
    value = helper.make_tensor_value_info("b", TensorProto.FLOAT, [2])
    node = helper.make_node("Constant", [], ["b"], value=external("../outside/private.txt"))
    branch = helper.make_graph([node], "branch", [], [value])
    choice = helper.make_node("If", ["yes"], ["b2"], then_branch=branch, else_branch=branch)
    yes = helper.make_tensor("yes", TensorProto.BOOL, [], [True])
    return model([choice, added("b2")], [yes], last="sum")


def in_function(sandbox: Sandbox) -> Any:
    """Return a model with external data in a function."""
    node = helper.make_node("Constant", [], ["y"], value=external("/etc/passwd"))
    function = helper.make_function("own", "F", [], ["y"], [node], [helper.make_opsetid("", 18)])
    call = helper.make_node("F", [], ["f"], domain="own")
    domain = helper.make_opsetid("own", 1)
    return model([call, added("f")], functions=[function], opsets=[domain], last="sum")


def in_sparse(sandbox: Sandbox) -> Any:
    """Return a model with external data in a sparse initializer."""
    indices = constant("i", [0], TensorProto.INT64)
    sparse = helper.make_sparse_tensor(external("/etc/passwd", dims=[1]), indices, [2])
    made = model([added("w")], last="sum")
    made.graph.sparse_initializer.append(sparse)
    return made


def endless(sandbox: Sandbox) -> Any:
    """Return a model with a Loop of 2^62 trips."""
    kinds = {"i": TensorProto.INT64, "go": TensorProto.BOOL, "x": TensorProto.FLOAT}
    shapes: dict[str, Any] = {"i": [], "go": [], "x": ["batch", 2]}
    inputs = [helper.make_tensor_value_info(one, kinds[one], shapes[one]) for one in kinds]
    outputs = [helper.make_tensor_value_info("go2", TensorProto.BOOL, [])]
    outputs += [helper.make_tensor_value_info("x2", TensorProto.FLOAT, ["batch", 2])]
    body = [helper.make_node("Identity", ["go"], ["go2"])]
    body += [helper.make_node("Add", ["x", "x"], ["x2"])]
    graph = helper.make_graph(body, "body", inputs, outputs)
    trips = helper.make_tensor("trips", TensorProto.INT64, [], [ENDLESS])
    go = helper.make_tensor("yes", TensorProto.BOOL, [], [True])
    loop = helper.make_node("Loop", ["trips", "yes", "mean"], ["sum"], body=graph)
    return model([loop], [trips, go], last="sum")


def huge(sandbox: Sandbox) -> Any:
    """Return a model that asks for 2^42 values."""
    shape = constant("shape", [2**21, 2**21], TensorProto.INT64)
    nodes = [helper.make_node("ConstantOfShape", ["shape"], ["h"])]
    nodes += [helper.make_node("ReduceMean", ["h"], ["r"], keepdims=0), added("r")]
    return model(nodes, [shape], last="sum")


def deep(sandbox: Sandbox) -> Any:
    """Return a model with 300 graphs inside each other."""
    value = helper.make_tensor_value_info("b", TensorProto.FLOAT, [2])
    node = helper.make_node("Identity", ["mean"], ["b"])
    for _ in range(300):
        branch = helper.make_graph([node], "branch", [], [value])
        node = helper.make_node("If", ["yes"], ["b"], then_branch=branch, else_branch=branch)
        if branch.ByteSize() > 2**24:
            break
    yes = helper.make_tensor("yes", TensorProto.BOOL, [], [True])
    return model([node], [yes], last="b")


def recursive(sandbox: Sandbox) -> Any:
    """Return a model with a function that calls itself."""
    node = helper.make_node("F", ["x"], ["y"], domain="own")
    domain = helper.make_opsetid("own", 1)
    function = helper.make_function("own", "F", ["x"], ["y"], [node], [domain])
    call = helper.make_node("F", ["mean"], ["f"], domain="own")
    return model([call], functions=[function], opsets=[domain], last="f")


def foreign(op: str, domain: str, **attributes: Any) -> Callable[[Sandbox], Any]:
    """Return a model with an operator of a domain, which may read files or run code."""
    node = helper.make_node(op, ["mean"], ["f"], domain=domain, **attributes)
    return lambda sandbox: model([node], opsets=[helper.make_opsetid(domain, 1)], last="f")


def special(kind: str) -> Callable[[Sandbox], None]:
    """Return a pipe or a link in the place of the model."""

    def make(sandbox: Sandbox) -> None:
        target = sandbox / "own/model.onnx"
        if kind == "pipe":
            os.mkfifo(target)
        else:
            target.symlink_to(kind)

    return make


def renamed(name: str) -> Callable[[Sandbox], Any]:
    """Return a model whose nodes and description have that name."""

    def make(sandbox: Sandbox) -> Any:
        made = model(producer_name=name, doc_string=name)
        for number, node in enumerate(made.graph.node):
            node.name = f"{name} {number}"
        return made

    return make


CASES = [
    case("weights in /etc/passwd", weights_of("/etc/passwd")),
    case("weights above the folder", weights_of("../../outside/private.txt")),
    case("weights in a device", weights_of("/dev/zero")),
    case("weights beside the file", weights_of("weights.bin")),
    case(
        "weights in an attribute",
        lambda sandbox: model(
            [helper.make_node("Constant", [], ["w"], value=external("/etc/passwd")), added("w")],
            last="sum",
        ),
    ),
    case("weights in a branch", in_branch),
    case("weights in a function", in_function),
    case("weights in a sparse tensor", in_sparse),
    case("a loop of 2^62 trips", endless),
    case("2^42 values", huge),
    case("graphs in graphs", deep, "tiny: not trained", harmless=True),
    case("a function that calls itself", recursive),
    case(
        "a program of an execution provider",
        foreign(
            "EPContext", "com.microsoft", ep_cache_context="../../outside/private.txt", embed_mode=0
        ),
    ),
    case("Python as an operator", foreign("PyOp", "pyopadd", module="evil", compute="run")),
    case("an operator of a library", foreign("PythonOp", "com.microsoft", func_name="os.system")),
    case("an operator that nobody knows", foreign("Evil", "evil")),
    case(
        "an opset of 10^9",
        lambda sandbox: helper.make_model(
            model().graph, ir_version=10, opset_imports=[helper.make_opsetid("", 10**9)]
        ),
    ),
    case("an IR version of 10^9", lambda sandbox: model(ir_version=10**9)),
    case(
        "a tensor shorter than its dims",
        lambda sandbox: model(
            [added("w")], [TensorProto(name="w", data_type=1, dims=[2], raw_data=b"1")], last="sum"
        ),
    ),
    case(
        "a tensor with negative dims",
        lambda sandbox: model(
            [added("w")],
            [TensorProto(name="w", data_type=1, dims=[-2], raw_data=bytes(8))],
            last="sum",
        ),
    ),
    case("a pickle", lambda sandbox: pickle.dumps(Evil(sandbox.payload))),
    case("an empty file", lambda sandbox: b""),
    case("half a file", lambda sandbox: model().SerializeToString()[:-40]),
    case(
        "names that control a terminal", renamed("\x1b[2J<script>alert(1)</script>"), harmless=True
    ),
    case("names that are paths", renamed("../../outside/private.txt"), harmless=True),
    case("a pipe", special("pipe")),
    case("/dev/zero", special("/dev/zero")),
]
