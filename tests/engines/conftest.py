"""What the children of these tests import is imported once, before they fork."""

import gc
import importlib

import pytest

# CPU seconds of each in a child that imports it: tvm 1.6, compile_fx 0.8, the others 0.1 to 0.3.
# None starts a thread, as onnxruntime and sklearn do, and none changes PyTorch.
MODULES = (
    "nncf",
    "onnxslim",
    "openvino",
    "torch._inductor.compile_fx",
    "torch.export._trace",
    "torch.onnx._internal.exporter._core",
    "tvm.relax.frontend.torch",
)


@pytest.fixture(scope="session", autouse=True)
def imported() -> None:
    """Each test runs several children; a test of what they import takes a Python of its own."""
    for name in MODULES:
        importlib.import_module(name)
    gc.freeze()
