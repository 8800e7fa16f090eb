"""Biases of quantized convolutions: integers of the sums, or float where these cannot hold them."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from tightrope.int8.quantize import in_qdq
from tightrope.int8.schemes import SCHEMES
from tightrope.onnx.session import run_onnx
from tiny_convolutions import make_convolutions, pictures, ranges_of

NODE = "stem"


def quantized(bias: float) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """The tiny model, and itself with NODE in int8, of which the first channel has nearly no
    weights and that bias."""
    model = make_convolutions()
    for tensor in model.graph.initializer:
        if tensor.name in ("stem_weight", "stem_bias"):
            array = numpy_helper.to_array(tensor).copy()
            array[0] = bias if tensor.name == "stem_bias" else 1e-12
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    ranges = ranges_of(model, pictures(8, seed=0))
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return model, in_qdq(copy, ranges, [NODE], SCHEMES["u8s8"], {})


def bias_maker(model: onnx.ModelProto) -> str | None:
    producers = {name: node.op_type for node in model.graph.node for name in node.output}
    return producers.get(next(node for node in model.graph.node if node.name == NODE).input[2])


@pytest.mark.parametrize(("bias", "producer"), [(1e-12, "DequantizeLinear"), (3.0, None)])
def test_a_bias_that_the_integers_cannot_hold_stays_in_float_and_is_not_lost(
    bias: float, producer: str | None
) -> None:
    model, found = quantized(bias)
    assert bias_maker(found) == producer
    batch = [{"pixel_values": pictures(4, seed=1)}]
    expected, logits = (run_onnx(one, batch, threads=1)[0] for one in (model, found))
    assert np.linalg.norm(logits - expected) < 0.1 * np.linalg.norm(expected)
