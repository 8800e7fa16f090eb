"""The engine of this bundle: ONNX Runtime."""

import json

import onnxruntime


def load(folder, threads):
    """Return run(inputs) -> float32 logits [batch, classes]."""
    options = json.loads((folder / "engine.json").read_text())["options"]
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads = threads, 1
    level = f"ORT_ENABLE_{options['optimization'].upper()}"
    settings.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    settings.enable_cpu_mem_arena = settings.enable_mem_pattern = options["arena"]
    spinning = str(int(options["spinning"]))
    settings.add_session_config_entry("session.intra_op.allow_spinning", spinning)
    # threads sleep between two calls
    settings.add_session_config_entry("session.force_spinning_stop", "1")
    path, providers = str(folder / "model.onnx"), ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(path, settings, providers=providers)
    return lambda inputs: session.run(None, inputs)[0]
