"""ONNX Runtime's TensorRT provider: its engine beside the ONNX file, its timing cache in work/.

Without CUDA graphs: a session holds a single graph for all shapes.
"""

import ctypes
import re
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import onnx
import onnxruntime

from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import example_of
from tightrope.onnx.file import save_onnx, signature_of
from tightrope.runtimes.buckets import in_words
from tightrope.runtimes.executed import counted, is_product
from tightrope.runtimes.onnxruntime.gpu import bound_runner, cuda_provider, prepare
from tightrope.runtimes.onnxruntime.session import Options, Providers, profiled, session_options
from tightrope.runtimes.tensorrt.profiles import Profile, covering
from tightrope.runtimes.tensorrt.typed_onnx import typed
from tightrope.signature import BATCH, SEQUENCE, Signature, signature

TENSORRT = "TensorrtExecutionProvider"
LIBRARY = Path(onnxruntime.__file__).parent / "capi/libonnxruntime_providers_tensorrt.so"
NVINFER = re.compile(rb"libnvinfer\.so\.\d+")
ENGINES = "*.engine"
NO_GRAPHS = {"graphs": False}


def build(
    model: onnx.ModelProto, path: Path, precision: str, threads: int, options: Options, state: Path
) -> dict[str, Any]:
    """Write the typed ONNX file `path`, and beside it the engine that TensorRT builds of it.

    ONNX Runtime does not show the layers of that engine: `executed` is what the file asks for,
    `provider` the number of operators per provider. Raises WorkFailed where a floating-point
    operator falls back to another provider.
    """
    prepare()
    load_tensorrt()
    model = typed(model, precision)
    save_onnx(model, path)
    state.mkdir(parents=True, exist_ok=True)
    input_signature = signature_of(model)
    providers = providers_of(path.parent, input_signature, precision, options, state)
    best = dict(zip(input_signature.free, profile_of(options).opt, strict=True))
    example = example_of(input_signature, best[BATCH], best.get(SEQUENCE, 0))
    _, provider = profiled(path, threads, options, providers, example=example)
    if not list(path.parent.glob(ENGINES)):
        raise WorkFailed(f"{TENSORRT} has kept no engine (the log says why)", transient=False)
    kinds = [node.op_type for node in model.graph.node if is_product(node.op_type)]
    return {"executed": counted((kind, precision) for kind in kinds), "provider": provider}


def load(path: Path, precision: str, threads: int, options: Options) -> Any:
    """Return `run(inputs) -> float32 logits [batch, classes]` within the optimization profile.

    `path` is the ONNX file. Raises WorkFailed where TensorRT would build another engine.
    """
    prepare()
    load_tensorrt()
    folder = path.parent
    input_signature = signature(open_manifest(folder / "engine.json", EngineManifest)["inputs"])
    providers = providers_of(folder, input_signature, precision, options)
    before = set(folder.glob(ENGINES))
    run = bound_runner(path, session_options(threads, options), providers, NO_GRAPHS)
    if set(folder.glob(ENGINES)) - before:
        raise WorkFailed(
            "the engine was built by another TensorRT or for another GPU, and would be built anew: "
            "delete the engine's folder and run again",
            transient=False,
        )
    return run


def providers_of(
    folder: Path,
    input_signature: Signature,
    precision: str,
    options: Options,
    state: Path | None = None,
) -> Providers:
    """Return TensorRT with its engine in `folder`, and CUDA for integer shape arithmetic.

    A single optimization profile, which covers all `profiles` of the options. A build has its
    timing cache in `state`.
    """
    ranges = {
        f"trt_profile_{key}_shapes": ",".join(
            f"{name}:{in_words(whole)}" for name, whole in input_signature.request(*shape).items()
        )
        for key, shape in profile_of(options)._asdict().items()
    }
    timing = {"trt_timing_cache_enable": "True", "trt_timing_cache_path": str(state)}
    settings = {
        "device_id": "0",
        "trt_engine_cache_enable": "True",
        "trt_engine_cache_path": str(folder),
        # before version 11 TensorRT uses the fp16 types of the file only with this flag
        "trt_fp16_enable": str(precision == "fp16"),
        **(timing if state else {}),
        **ranges,
    }
    return [(TENSORRT, settings), cuda_provider(NO_GRAPHS)]


def profile_of(options: Options) -> Profile:
    """Return the single optimization profile of the engine."""
    return covering([Profile.of(one) for one in options["profiles"]])


def load_tensorrt(library: Path = LIBRARY) -> None:
    """Load the TensorRT that the provider's library is linked to, from its package or the path.

    That is one major version, not always the installed one. Raises WorkFailed where it is missing.
    """
    linked = set(NVINFER.findall(library.read_bytes())) if library.is_file() else set()
    found = find_spec("tensorrt_libs")
    folders = (found.submodule_search_locations or ()) if found else ()
    for name in sorted(word.decode() for word in linked):
        if not any(loads(path) for path in (name, *(str(Path(one, name)) for one in folders))):
            raise WorkFailed(
                f"onnxruntime is linked to {name}, which cannot be loaded: put the libraries of "
                f"TensorRT {name.rpartition('.')[2]} on LD_LIBRARY_PATH",
                transient=False,
            )


def loads(library: str) -> bool:
    """Load a shared library for all that are loaded later; return success."""
    with suppress(OSError):
        ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
        return True
    return False
