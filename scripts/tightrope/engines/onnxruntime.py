"""ONNX Runtime on its CPU provider."""

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import onnx
import onnxruntime

from tightrope.errors import ArtifactError
from tightrope.inputs import Arrays
from tightrope.onnx_graph import load_onnx, save_onnx

FILE = "model.onnx"
PROVIDERS = ["CPUExecutionProvider"]


def build(source: Path, target: Path, *, precision: str, threads: int) -> dict[str, Any]:
    """Put the ONNX file `source` (Q/DQ for int8) into folder `target`, checked by a session."""
    save_onnx(load_onnx(source), target / FILE)
    return {"format": "onnx", "executed": executed(target / FILE, threads)}


def load(path: Path, *, precision: str, threads: int) -> Any:
    """`run(inputs) -> float32 logits [batch, classes]` for any batch and sequence."""
    session = open_session(path / FILE, session_options(threads))

    def run(inputs: Arrays) -> Any:
        return session.run(None, inputs)[0]

    return run


def session_options(threads: int) -> onnxruntime.SessionOptions:
    """All graph optimizations, so many intra-op threads, idle threads asleep between calls."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # a spinning pool of an idle engine would slow down the engine that is timed next to it
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return options


def open_session(path: Path, options: onnxruntime.SessionOptions) -> onnxruntime.InferenceSession:
    """A session on the CPU provider; raises ArtifactError for a file that is no ONNX."""
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=PROVIDERS)
    except onnxruntime.capi.onnxruntime_pybind11_state.InvalidProtobuf as error:
        raise ArtifactError(f"{path}: no readable ONNX file; delete it and run again") from error


def executed(path: Path, threads: int) -> dict[str, dict[str, int]]:
    """How many operators of each class with weights run in which type, after optimization."""
    with tempfile.TemporaryDirectory() as folder:
        options = session_options(threads)
        options.optimized_model_filepath = str(Path(folder, "optimized.onnx"))
        open_session(path, options)
        graph = onnx.load(options.optimized_model_filepath).graph
    counts: dict[str, Counter[str]] = {}
    for node in graph.node:
        if any(word in node.op_type for word in ("MatMul", "Gemm", "Conv", "Attention")):
            integer = node.op_type.startswith("QLinear") or "Integer" in node.op_type
            precision = "int8" if integer or node.op_type.startswith("QGemm") else "fp32"
            counts.setdefault(node.op_type, Counter())[precision] += 1
    return {kind: dict(count) for kind, count in sorted(counts.items())}
