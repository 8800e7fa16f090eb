"""Which attention is quantized for TensorRT: both operands of both of its products.

NVIDIA's Model Optimizer does so too (modelopt/onnx/quantization/graph_utils.py,
modelopt/onnx/export/fp8_exporter.py).
"""

import onnx
from onnx import TensorProto

from tightrope.onnx.attention_products import Attention, attention_in
from tightrope.onnx.row_dependencies import Shapes
from tightrope.onnx.trial_shapes import shapes_seen

# a Softmax returns 0 to 1 for any input, so the scale needs no data
PROBABILITIES = [0.0, 1.0]
# widths of a head for which TensorRT has fused attention in int8, by the documentation of 10
WIDTHS = (16, 32, 64)
# fp8 has more: multiples, up to the largest for which Model Optimizer quantizes
MULTIPLE, LARGEST = 16, 256


def attention_to_quantize(
    model: onnx.ModelProto, kind: int
) -> tuple[list[Attention], dict[str, str]]:
    """Return the attention that is quantized, and the reason for each Softmax of the others.

    `kind` is the type of the quantized operands, INT8 or FLOAT8E4M3FN. Raises ArtifactError where
    the model does not run.
    """
    found, others = attention_in(model)
    shapes = shapes_seen(model) if found else {}
    reasons = {one.softmax: unfit(one, shapes, kind) for one in found}
    others |= {name: reason for name, reason in reasons.items() if reason}
    return [one for one in found if one.softmax not in others], others


def unfit(attention: Attention, shapes: Shapes, kind: int) -> str | None:
    """Return why tensor cores run an attention no faster in 8 bits, None where they may."""
    if all(shape[-2] == 1 for shape in shapes[attention.query]):
        return "one query per example"
    widths = sorted({shapes[name][0][-1] for name in (attention.query, attention.value)})
    if kind == TensorProto.INT8:
        fit = all(width in WIDTHS for width in widths)
        sizes = ", ".join(map(str, WIDTHS))
    else:
        fit = all(width % MULTIPLE == 0 and width <= LARGEST for width in widths)
        sizes = f"multiples of {MULTIPLE} up to {LARGEST}"
    return None if fit else f"heads of {' and '.join(map(str, widths))} channels, not {sizes}"
