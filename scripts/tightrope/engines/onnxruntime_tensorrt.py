"""ONNX Runtime with the TensorRT provider; engine and timing cache are in the variant's folder.

Without CUDA graphs: a session holds a single graph for all shapes.
"""

from pathlib import Path
from typing import Any

import onnx

from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import example_of
from tightrope.onnx.file import load_onnx, max_sequence, save_onnx, signature_of
from tightrope.runtimes.buckets import in_words
from tightrope.runtimes.executed import Executed, counted, is_product
from tightrope.runtimes.onnxruntime.gpu import (
    bound_runner,
    cuda_provider,
    load_tensorrt,
    prepare,
)
from tightrope.runtimes.onnxruntime.session import (
    Options,
    Providers,
    profiled,
    session_options,
)
from tightrope.runtimes.tensorrt.profiles import Profile, covering
from tightrope.runtimes.tensorrt.typed_onnx import typed
from tightrope.signature import BATCH, SEQUENCE, Signature, signature

FILE = "model.onnx"
TENSORRT = "TensorrtExecutionProvider"
ENGINES = "*.engine"
NO_GRAPHS = {"graphs": False}
SESSION = {"optimization": "all", "spinning": True, "arena": True}


def build(
    source: Path, target: Path, *, precision: str, device: str, threads: int, options: Options
) -> dict[str, Any]:
    """Write the typed ONNX file `source` and the engine that TensorRT builds into folder `target`.

    Raises WorkFailed where a floating-point operator falls back to another provider.
    """
    prepare()
    load_tensorrt()
    model = typed(load_onnx(source), precision)
    input_signature, longest = signature_of(model), max_sequence(model)
    save_onnx(model, target / FILE)
    providers = providers_of(target, input_signature, precision, options)
    best = dict(zip(input_signature.free, profile_of(options).opt, strict=True))
    example = example_of(input_signature, best[BATCH], best.get(SEQUENCE, 0))
    _, provider = profiled(target / FILE, threads, SESSION, providers, example=example)
    if not list(target.glob(ENGINES)):
        raise WorkFailed(f"{TENSORRT} has kept no engine (the log says why)", transient=False)
    return {
        "format": "onnx",
        "executed": declared(model, precision),
        "provider": provider,
        "inputs": input_signature.facts(),
        "max_sequence": longest,
    }


def load(path: Path, *, precision: str, device: str, threads: int, options: Options) -> Any:
    """Return `run(inputs) -> float32 logits [batch, classes]` within the optimization profile."""
    prepare()
    load_tensorrt()
    input_signature = signature(open_manifest(path / "engine.json", EngineManifest)["inputs"])
    providers = providers_of(path, input_signature, precision, options)
    before = set(path.glob(ENGINES))
    run = bound_runner(path / FILE, session_options(threads, SESSION), providers, NO_GRAPHS)
    if set(path.glob(ENGINES)) - before:
        raise WorkFailed(
            "the engine was built by another TensorRT or for another GPU, and would be built anew: "
            "delete the engine's folder and run again",
            transient=False,
        )
    return run


def providers_of(
    folder: Path, input_signature: Signature, precision: str, options: Options
) -> Providers:
    """Return TensorRT with its caches in `folder`, and CUDA for integer shape arithmetic.

    A single optimization profile, which covers all `profiles` of the options.
    """
    ranges = {
        f"trt_profile_{key}_shapes": ",".join(
            f"{name}:{in_words(whole)}" for name, whole in input_signature.request(*shape).items()
        )
        for key, shape in profile_of(options)._asdict().items()
    }
    kept = {
        "trt_engine_cache_enable": "True",
        "trt_engine_cache_path": str(folder),
        "trt_timing_cache_enable": "True",
        "trt_timing_cache_path": str(folder),
        # before version 11 TensorRT uses the fp16 types of the file only with this flag
        "trt_fp16_enable": str(precision == "fp16"),
    }
    return [(TENSORRT, {"device_id": "0", **kept, **ranges}), cuda_provider(NO_GRAPHS)]


def profile_of(options: Options) -> Profile:
    """Return the single optimization profile of the engine."""
    return covering([Profile.of(one) for one in options["profiles"]])


def declared(model: onnx.ModelProto, precision: str) -> Executed:
    """Count the matrix products of the typed file by precision.

    ONNX Runtime does not show the layers of its TensorRT engine, so this engine alone reports
    requested instead of executed precisions. From version 11 on TensorRT computes in the types of
    the file; before, it may.
    """
    kinds = [node.op_type for node in model.graph.node if is_product(node.op_type)]
    return counted((kind, precision) for kind in kinds)
