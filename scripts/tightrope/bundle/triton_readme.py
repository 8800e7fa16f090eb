"""README.md of a model repository for Triton: how to start it, and where its settings are from."""

from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.bundle.triton_backends import BF16, Backend
from tightrope.bundle.triton_settings import Settings
from tightrope.signature import SEQUENCE
from tightrope.variants import Variant

TEMPLATE = """\
# {model} for Triton Inference Server

The engine `{variant}`, made by Tightrope. **Not run:** this folder was not started in a Triton
server before it was packed. `config.pbtxt` follows the sources of Triton 2.73. No other folder may
lie beside `{model}`: Triton takes each for a model, and does not start.

## Start

In this folder, where IMAGE is NVIDIA's container `tritonserver:<xx.yy>-py3` of a release whose
{library} reads what {version} wrote ({exactly}):

```sh
{command}
```

## Ask

```python
{client}
```

{inputs}

## Where the settings are from

| setting | value | from |
| --- | --- | --- |
{settings}

They hold for the machine that was measured. On another one, or with requests of other sizes,
measure again: with Tightrope, or with Triton's `perf_analyzer`.

## What differs from the measurement

{differences}
"""
CLIENT = """\
import numpy as np
import tritonclient.http as http  # pip install tritonclient[http]

client = http.InferenceServerClient("localhost:8000")
inputs = []
for name, dtype, shape in {signature}:
    array = np.ones(shape, dtype)  # put the inputs here
    inputs.append(http.InferInput(name, shape, {{"int64": "INT64", "float32": "FP32"}}[dtype]))
    inputs[-1].set_data_from_numpy(array)
outputs = [http.InferRequestedOutput("logits"{asked})]
print(client.infer("{model}", inputs, outputs=outputs).as_numpy("logits"))"""
# for value, index and label of the highest logit in place of all logits
TOP = ", class_count=1"


def readme(
    model: str,
    variant: Variant,
    backend: Backend,
    engine: EngineManifest,
    settings: Settings,
    lengths: list[int],
) -> str:
    """Return the text of README.md; `lengths` in tokens are what texts should be padded to."""
    version = engine["libraries"].get(backend.library)
    exact = f"exactly TensorRT {version}" if variant.engine == "tensorrt" else "best the same"
    return TEMPLATE.format(
        model=model,
        variant=variant,
        library=backend.library.removesuffix("-cu13"),
        version=version or "an unknown version",
        exactly=exact,
        command=command(variant, engine),
        client=client(model, variant, engine),
        inputs=inputs(backend, engine, settings, lengths),
        settings="\n".join(rows(backend, settings)),
        differences="\n".join(f"- {one}" for one in differences(variant, engine, settings)),
    )


def command(variant: Variant, engine: EngineManifest) -> str:
    """Return the command that starts a server on this folder."""
    gpu = variant.device == "cuda"
    exact = gpu and variant.precision == "fp32" and variant.engine != "tensorrt"
    compatible = variant.engine == "tensorrt" and engine["options"].get("version_compatible")
    return " \\\n    ".join(
        [
            f"docker run --rm{' --gpus=1' if gpu else ''} -p8000:8000 -p8001:8001 -p8002:8002",
            # without it cuDNN rounds the products of convolutions to TF32
            *(["-e NVIDIA_TF32_OVERRIDE=0"] if exact else []),
            '-v "$PWD":/models:ro IMAGE',
            "tritonserver --model-repository=/models",
            *(["--backend-config=tensorrt,version-compatible=true"] if compatible else []),
        ]
    )


def client(model: str, variant: Variant, engine: EngineManifest) -> str:
    """Return a program that sends one request."""
    signature = [
        (name, dtype, [1, *(16 if isinstance(axis, str) else axis for axis in axes[1:])])
        for name, dtype, axes in engine["inputs"]
    ]
    asked = "" if is_half(variant) else TOP
    return CLIENT.format(model=model, signature=signature, asked=asked)


def is_half(variant: Variant) -> bool:
    """Return whether the logits are float16, of which Triton gives no classification."""
    return variant.engine == "torchscript" and variant.precision == "fp16"


def inputs(backend: Backend, engine: EngineManifest, settings: Settings, lengths: list[int]) -> str:
    """Return what a request holds."""
    most = engine.get("max_sequence")
    limit = f" of at most {most} tokens" if most else ""
    tokens = (
        f"`input_ids` and `attention_mask` are texts{limit}, encoded with the tokenizer of the "
        "checkpoint and padded with mask 0. "
    )
    pixels = "`pixel_values` are images as the checkpoint's image processor makes them. "
    together = (
        "Triton joins only requests of the same shape: pad to few lengths, "
        f"as {', '.join(map(str, lengths))} tokens, which were measured. "
    )
    rows = (
        f"A request holds 1 to {settings.largest} rows."
        if backend.batches
        else (
            "A request holds any number of rows, but the label of the highest logit, for which the "
            "program asks, is right for a single row only."
        )
    )
    joined = together if backend.batches and lengths else ""
    return f"{pixels if is_images(engine) else tokens}{joined}{rows}"


def is_images(engine: EngineManifest) -> bool:
    """Return whether the engine takes images."""
    return not any(SEQUENCE in axes for _, _, axes in engine["inputs"])


def rows(backend: Backend, settings: Settings) -> list[str]:
    """Return the rows of the table of settings."""
    origins = settings.origins
    batching = [
        ("`max_batch_size`", settings.largest, origins["largest"]),
        ("`preferred_batch_size`", settings.preferred, origins["preferred"]),
        ("`max_queue_delay_microseconds`", settings.delay_us, origins["delay_us"]),
    ]
    none = [("`max_batch_size`", 0, "the backend takes no batches that differ in size, see below")]
    found = [
        *(batching if backend.batches else none),
        ("instances", settings.instances, origins["instances"]),
        ("threads of each", settings.threads, origins["threads"]),
    ]
    return [f"| {name} | {value} | {why} |" for name, value, why in found]


def differences(variant: Variant, engine: EngineManifest, settings: Settings) -> list[str]:
    """Return what a server does otherwise than the measurement did."""
    found = [
        "The times of the measurement are those of the engine alone: they have no network, queue "
        "and copies."
    ]
    if settings.instances > 1 and variant.device == "cpu":
        found.append(
            "The instances were processes on cores of their own. Those of Triton are threads of "
            "one process, which share all cores."
        )
    graphs = engine["options"].get("graphs") and not engine.get("graphs_refused")
    if graphs and variant.engine != "tensorrt":
        found.append("The measured engine ran as CUDA graphs, which this backend does not make.")
    return [*found, *SPECIFIC[variant.engine](variant, engine)]


def of_onnxruntime(variant: Variant, engine: EngineManifest) -> list[str]:
    """Return the differences of ONNX Runtime."""
    return [
        "Threads spin for a moment after each call and take time from other instances; in the "
        "measurement they slept. Triton has no parameter for it."
    ]


def of_openvino(variant: Variant, engine: EngineManifest) -> list[str]:
    """Return the differences of OpenVINO."""
    batches = (
        "Triton joins no requests to a batch; a client may. With a `max_batch_size` above 0 the "
        "backend would fix the batch at it and refuse all smaller ones, or pad them "
        "(`ENABLE_BATCH_PADDING`), which costs a full batch each time and needs a fixed length."
    )
    static = (
        "One program answers requests of any shape. Measured was a static program per shape "
        "bucket, which may be faster."
    )
    rounded = (
        "**On a processor with bf16 instructions (avx512_bf16, amx_bf16) it computes in bf16**, "
        "which is faster and rounds: not the accuracy that was measured. The backend has no "
        "parameter for f32. There, serve the variant of onnxruntime, or one of OpenVINO in bf16."
    )
    return [
        batches,
        *([static] if engine["options"].get("buckets") else []),
        *([] if variant.precision in BF16 else [rounded]),
    ]


def of_torchscript(variant: Variant, engine: EngineManifest) -> list[str]:
    """Return the differences of TorchScript."""
    packed = (
        "The measured engine packed its weights while it loaded (`optimize_for_inference`). Triton "
        "does not, and may be slower."
    )
    return [
        "The numbers of threads hold for the whole server: those of the first PyTorch model that "
        "it loads.",
        *([packed] if variant.device == "cpu" and is_images(engine) else []),
        *(["The logits are float16, of which Triton gives no labels."] if is_half(variant) else []),
    ]


def of_tensorrt(variant: Variant, engine: EngineManifest) -> list[str]:
    """Return the differences of TensorRT."""
    graphs = "CUDA graphs are captured for the measured shapes; other requests run without."
    return [
        *([graphs] if engine["options"]["graphs"] else []),
        "Of several GPUs each gets the instances; the plan is for the kind that it was built on.",
    ]


SPECIFIC = {
    "onnxruntime": of_onnxruntime,
    "openvino": of_openvino,
    "torchscript": of_torchscript,
    "tensorrt": of_tensorrt,
}
