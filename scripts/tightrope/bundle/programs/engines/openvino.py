"""The engine of this bundle: OpenVINO."""

import functools
import json

import numpy as np
import openvino
from bundled.buckets import padded

# without a hint an fp32 model runs in bf16 on CPUs that support it
HINTS = {"fp32": "f32", "bf16": "bf16", "int8": "f32", "int8-bf16": "bf16"}


def load(folder, threads):
    """Return run(inputs) -> float32 logits [batch, classes]; call it from one thread."""
    engine = json.loads((folder / "engine.json").read_text())
    buckets, core = engine["options"]["buckets"], openvino.Core()
    hint = {"INFERENCE_PRECISION_HINT": HINTS[engine["precision"]]}
    settings = {**hint, "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1}
    model = core.read_model(folder / "model.xml")

    @functools.cache  # a program is compiled when its shape first comes
    def request_of(shape):
        static = model.clone()
        axes = {port.any_name: list(port.partial_shape)[len(shape) :] for port in static.inputs}
        static.reshape({name: [*shape, *rest] for name, rest in axes.items()})
        return core.compile_model(static, "CPU", settings).create_infer_request()

    def run(inputs):
        shape, whole = padded(inputs, buckets) if buckets else ((), inputs)
        request = request_of(shape)
        for name, array in whole.items():
            request.set_tensor(name, openvino.Tensor(array, shared_memory=True))
        request.infer(share_outputs=True)
        rows = len(next(iter(inputs.values())))
        return np.array(request.get_output_tensor(0).data)[:rows]

    return run
