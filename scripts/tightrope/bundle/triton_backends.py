"""Which of Triton's backends serves an engine, with the settings that the engine was timed with.

Keys and their meaning are those of the backends' sources of Triton 2.73 (onnxruntime.cc,
openvino.cc, pt/model_state.cc, instance_state.cc of TensorRT).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.bundle.text_proto import Message
from tightrope.bundle.triton_settings import Settings
from tightrope.engine_table import ENGINES
from tightrope.errors import TightropeError
from tightrope.summary.result_types import Result
from tightrope.variants import Variant, parse

# the graph optimization levels of ONNX Runtime that are not Triton's default
LEVELS = {"basic": -1, "extended": 1}
# precisions of OpenVINO that compute in bf16 where they do not in int8
BF16 = ("bf16", "int8-bf16")
Options = dict[str, Any]


class Backend(NamedTuple):
    """A backend of Triton: its names in config.pbtxt and its files, named as it looks for them.

    `batches` says whether it takes the batches that Triton makes of several requests.
    """

    name: str
    platform: str | None
    files: tuple[str, ...]
    library: str
    parameters: Callable[[Variant, Options, Settings], dict[str, str]]
    batches: bool = True


def of_onnxruntime(variant: Variant, options: Options, settings: Settings) -> dict[str, str]:
    """Return the parameters of a session as it was timed."""
    arena = str(int(options["arena"]))
    return {
        "intra_op_thread_count": str(settings.threads),
        "inter_op_thread_count": "1",
        "execution_mode": "0",
        "enable_mem_arena": arena,
        "enable_mem_pattern": arena,
    }


def of_openvino(variant: Variant, options: Options, settings: Settings) -> dict[str, str]:
    """Return the parameters of one compiled model, whose streams all instances share."""
    found = {
        "NUM_STREAMS": str(settings.instances),
        "INFERENCE_NUM_THREADS": str(settings.instances * settings.threads),
    }
    return {**found, "HINT_BF16": "YES"} if variant.precision in BF16 else found


def of_torchscript(variant: Variant, options: Options, settings: Settings) -> dict[str, str]:
    """Return the threads, which hold for all PyTorch models of a server."""
    return {"INTRA_OP_THREAD_COUNT": str(settings.threads), "INTER_OP_THREAD_COUNT": "1"}


def of_tensorrt(variant: Variant, options: Options, settings: Settings) -> dict[str, str]:
    """Return no parameters: the plan holds all."""
    return {}


BACKENDS = {
    "onnxruntime": Backend("onnxruntime", None, ("model.onnx",), "onnxruntime", of_onnxruntime),
    "openvino": Backend(
        "openvino", None, ("model.xml", "model.bin"), "openvino", of_openvino, batches=False
    ),
    "tensorrt": Backend("tensorrt", "tensorrt_plan", ("model.plan",), "tensorrt-cu13", of_tensorrt),
    "torchscript": Backend("pytorch", "pytorch_libtorch", ("model.pt",), "torch", of_torchscript),
}
REFUSED = {
    "pytorch": "it is a Python program, and no backend of Triton loads its files",
    "compile": "it is compiled by Python while it loads, and no backend of Triton loads its files",
    "inductor": "Triton's backend for AOTInductor packages takes no batches",
    "tvm": "Triton has no backend for TVM",
}


def backend_of(model: str, engine: EngineManifest) -> tuple[Variant, Backend]:
    """Return the parsed variant and the backend that serves it.

    Raises TightropeError where the engine failed, no backend serves it, or it lacks a file.
    """
    name = f"{model} {engine['variant']}"
    if engine["status"] != "ok":
        reason = engine.get("reason", "its build failed")
        raise TightropeError(f"{name}: {reason}; bundle a variant that was built")
    variant = parse(engine["variant"])
    if why := refusal(variant, engine["options"]):
        raise TightropeError(
            f"{name}: {why}; Triton serves variants of {', '.join(BACKENDS)}, and the service of "
            "docs/bundle.md every engine"
        )
    backend = BACKENDS[variant.engine]
    if lacking := sorted({*backend.files} - engine["files"].keys()):
        raise TightropeError(f"{name}: engine.json lists no {lacking[0]}; build the engine again")
    return variant, backend


def refusal(variant: Variant, options: Options) -> str | None:
    """Return why no backend serves a variant, None where one does."""
    if variant.engine == "torchscript" and variant.precision == "bf16":
        return "its logits are bf16, a type that Triton's PyTorch backend has no outputs of"
    if variant.engine == "openvino" and options.get("route") == "pytorch":
        return (
            "converted from PyTorch (`openvino: {route: pytorch}`) its output has no name, which "
            "Triton needs; convert from ONNX"
        )
    if variant.engine == "onnxruntime" and options.get("provider") == "tensorrt":
        return "Triton would build another TensorRT engine than the measured one"
    return REFUSED.get(variant.engine)


def require_precision(model: str, variant: Variant, isa: Sequence[str]) -> None:
    """Raise TightropeError for an OpenVINO engine that would compute in bf16 unasked.

    OpenVINO does where the processor has the instructions, unless it is told f32. The backend's
    only word for it is HINT_BF16. An int8 engine was seen to change a logit by 3.
    """
    instructions = (ENGINES[variant.engine].instructions or {}).get("bf16", ())
    found = sorted({*instructions} & {*isa})
    if variant.engine == "openvino" and variant.precision not in BF16 and found:
        raise TightropeError(
            f"{model} {variant}: on a processor with {found[0]}, as it was measured on, Triton's "
            f"OpenVINO backend computes it in bf16 and cannot be told f32; bundle one of openvino "
            f"in {' or '.join(BF16)}, or of onnxruntime; the service of docs/bundle.md takes any"
        )


def optimization(
    variant: Variant, engine: EngineManifest, result: Result, settings: Settings
) -> Message:
    """Return `optimization` of config.pbtxt, empty where all is as Triton does it unasked."""
    options = engine["options"]
    if variant.engine == "onnxruntime":
        level = LEVELS.get(options["optimization"])
        graph: Message = {} if level is None else {"graph": {"level": level}}
        cuda: Message = {"name": "cuda", "parameters": [{"key": "use_tf32", "value": "0"}]}
        gpu = {"execution_accelerators": {"gpu_execution_accelerator": [cuda]}}
        return {**graph, **(gpu if variant.device == "cuda" else {})}
    if variant.engine == "tensorrt" and options["graphs"]:
        shapes = {
            (row["batch"], row.get("sequence")): None
            for row in result["latency"]
            if row["batch"] <= settings.largest
        }
        specs = [
            {"batch_size": batch, "input": inputs_of(engine, sequence)}
            for batch, sequence in shapes
        ]
        return {"cuda": {"graphs": True, "graph_spec": specs}}
    return {}


def inputs_of(engine: EngineManifest, sequence: int | None) -> list[Message]:
    """Return the shape of each input without its batch, as entries of a map."""
    return [
        {"key": name, "value": {"dim": [sequence if isinstance(a, str) else a for a in axes[1:]]}}
        for name, _, axes in engine["inputs"]
    ]
